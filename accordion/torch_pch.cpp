// Empty: carries the precompiled torch/torch.h that the other targets share.
