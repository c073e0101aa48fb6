"""The zoo's networks, written from their descriptions: layers in the order in which data meets them."""

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        stride = 1 if before == after else 2
        self.path = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.around = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return F.relu(self.path(x) + self.around(x))


def resnet18(classes):
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        *(Residual(before, after) for before, after in zip(widths, widths[1:])),
        nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, classes))


def vgg19bn(classes):
    layers, channels = [], 3
    for stage in ("64 64", "128 128", "256 256 256 256", "512 512 512 512", "512 512 512 512"):
        for width in map(int, stage.split()):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    if classes == 10:
        layers += [nn.Dropout(0.5), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 512), nn.ReLU(),
                   nn.Linear(512, 10)]
    else:
        layers += [nn.Dropout(0.5), nn.Linear(512, 4096), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(),
                   nn.Dropout(0.5), nn.Linear(4096, classes)]
    return nn.Sequential(*layers)


class PreActivation(nn.Module):
    """Of SENet for CIFAR-10."""

    def __init__(self, before, after):
        super().__init__()
        stride = 1 if before == after else 2
        self.activate = nn.Sequential(nn.BatchNorm2d(before), nn.ReLU())
        self.path = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False))
        self.around = None if stride == 1 else nn.Conv2d(before, after, 1, stride, bias=False)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(after, after // 16, 1), nn.ReLU(), nn.Conv2d(after // 16, after, 1),
            nn.Sigmoid())

    def forward(self, x):
        active = self.activate(x)
        y = self.path(active)
        return self.gate(y) * y + (x if self.around is None else self.around(active))


class PostActivation(nn.Module):
    """Of SENet for CIFAR-100."""

    def __init__(self, before, after):
        super().__init__()
        stride = 1 if before == after else 2
        self.path = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1), nn.BatchNorm2d(after), nn.ReLU())
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(after, after // 16), nn.ReLU(),
            nn.Linear(after // 16, after), nn.Sigmoid())
        self.around = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride), nn.BatchNorm2d(after))

    def forward(self, x):
        y = self.path(x)
        return F.relu(y * self.gate(y)[:, :, None, None] + self.around(x))


def eight_blocks(block, last, bias, classes):
    widths = [64, 64, 64, 128, 128, 256, 256, last, last]
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1, bias=bias), nn.BatchNorm2d(64), nn.ReLU(),
        *(block(before, after) for before, after in zip(widths, widths[1:])),
        nn.AvgPool2d(4), nn.Flatten(), nn.Linear(last, classes))


def seresnet18(classes):
    return eight_blocks(PostActivation, 516, True, classes)


def senet(classes):
    return eight_blocks(PreActivation, 512, False, 10) if classes == 10 else seresnet18(classes)


class Wide(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.BatchNorm2d(before), nn.ReLU(), nn.Conv2d(before, after, 3, 1, 1),
            nn.BatchNorm2d(after), nn.ReLU(), nn.Conv2d(after, after, 3, stride, 1))
        self.around = nn.Identity() if (before, stride) == (after, 1) else nn.Conv2d(before, after, 1, stride)

    def forward(self, x):
        return self.path(x) + self.around(x)


def wideresnet(classes, k=10):
    layers, channels = [nn.Conv2d(3, 16, 3, padding=1)], 16
    for width, stride in ((16 * k, 1), (32 * k, 2), (64 * k, 2)):
        layers += [Wide(channels, width, stride)] + [Wide(width, width, 1) for _ in range(3)]
        channels = width
    return nn.Sequential(*layers, nn.BatchNorm2d(channels, momentum=0.9), nn.ReLU(), nn.AvgPool2d(8), nn.Flatten(),
                         nn.Linear(channels, classes))


class Dense(nn.Module):
    def __init__(self, before):
        super().__init__()
        self.path = nn.Sequential(
            nn.BatchNorm2d(before), nn.ReLU(), nn.Conv2d(before, 48, 1, bias=False),
            nn.BatchNorm2d(48), nn.ReLU(), nn.Conv2d(48, 12, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat((x, self.path(x)), 1)


def densenet(classes):
    layers = [nn.Conv2d(3, 24, 3, padding=1, bias=False)]
    for first, count in ((24, 6), (48, 12), (96, 24), (192, 16)):
        if first > 24:
            layers += [nn.BatchNorm2d(2 * first), nn.ReLU(), nn.Conv2d(2 * first, first, 1, bias=False),
                       nn.AvgPool2d(2)]
        layers += [Dense(first + 12 * i) for i in range(count)]
    return nn.Sequential(*layers, nn.BatchNorm2d(384), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(),
                         nn.Linear(384, classes))


def units(*channels, kernels):
    layers = []
    for before, after, kernel in zip(channels, channels[1:], kernels):
        layers += [nn.Conv2d(before, after, kernel, padding=kernel // 2), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers)


class Inception(nn.Module):
    def __init__(self, before, one, reduce3, three, reduce5, five, pool):
        super().__init__()
        self.branches = nn.ModuleList([
            units(before, one, kernels=[1]),
            units(before, reduce3, three, kernels=[1, 3]),
            units(before, reduce5, five, five, kernels=[1, 3, 3]),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), units(before, pool, kernels=[1]))])

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def googlenet(classes):
    return nn.Sequential(
        units(3, 192, kernels=[3]),
        Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), nn.MaxPool2d(3, 2, 1),
        Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
        Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64),
        Inception(528, 256, 160, 320, 32, 128, 128), nn.MaxPool2d(3, 2, 1),
        Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128),
        nn.AvgPool2d(8), nn.Flatten(), nn.Linear(1024, classes))


class Lstm(nn.Module):
    """Every gate by hand; one matrix for embedding and decoder."""

    def __init__(self, vocabulary, layers, hidden, dropout):
        super().__init__()
        self.bias = nn.Parameter(torch.empty(vocabulary))
        gates = [(4 * hidden, hidden), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,)]
        shapes = [(vocabulary, hidden)] + layers * gates
        self.weights = nn.ParameterList([nn.Parameter(torch.empty(shape)) for shape in shapes])
        self.layers, self.dropout, self.state = layers, dropout, None

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def forward(self, tokens):
        words, *gates = self.weights
        x = self.drop(words[tokens.long().T].contiguous())  # position, stream, unit: the order in which dropout draws
        zero = torch.zeros(x.shape[1:])
        state = self.state or [(zero, zero)] * self.layers
        self.state = []
        for layer, (hidden, cell) in enumerate(state):
            given, recalled, bias, another = gates[4 * layer:4 * layer + 4]
            outputs = []
            for now in x:
                enter, keep, content, leave = (now @ given.T + bias + hidden @ recalled.T + another).chunk(4, 1)
                cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(content)
                hidden = torch.sigmoid(leave) * torch.tanh(cell)
                outputs.append(hidden)
            self.state.append((hidden, cell))
            x = self.drop(torch.stack(outputs))
        return torch.cat([x[:, stream] @ words.T + self.bias for stream in range(x.shape[1])])


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before = nn.LayerNorm(width)
        self.into = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        size = x.shape[2] // self.heads
        query, key, value = (part.split(size, 2) for part in self.into(self.before(x)).chunk(3, 2))
        weights = []
        for head in range(self.heads):
            match = torch.einsum("spd,sqd->spq", query[head], key[head]) / size ** 0.5
            seen = torch.exp(match) * torch.tril(torch.ones(match.shape[1:]))
            weights.append(seen / seen.sum(2, keepdim=True))
        weights = F.dropout(torch.stack(weights, 1), self.dropout, self.training)
        mixed = [weights[:, head] @ value[head] for head in range(self.heads)]
        return F.dropout(self.out(torch.cat(mixed, 2)), self.dropout, self.training)


class Gpt(nn.Module):
    def __init__(self, vocabulary, layers, heads, width, context, dropout):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.dropout = dropout
        self.steps = nn.ModuleList()
        for _ in range(layers):
            self.steps += [Attention(width, heads, dropout), nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width),
                nn.Dropout(dropout))]
        self.last = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens.long()) + self.places(torch.arange(tokens.shape[1]))
        x = F.dropout(x, self.dropout, self.training)
        for step in self.steps:
            x = x + step(x)
        return torch.cat([stream @ self.words.weight.T for stream in self.last(x)])


def mlp(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return layers


class Dlrm(nn.Module):
    def __init__(self, numbers, tables, embedding, bottom, top):
        super().__init__()
        self.numbers = numbers
        self.bottom = nn.Sequential(*mlp(numbers, bottom, bottom // 2, embedding))
        self.tables = nn.ModuleList([nn.Embedding(size, embedding) for size in tables])
        pairs = len(tables) * (len(tables) + 1) // 2
        self.top = nn.Sequential(*mlp(embedding + pairs, top, top // 2, 1)[:-1])

    def forward(self, rows):
        vectors = [self.bottom(rows[:, :self.numbers])]
        vectors += [table(ids.long()) for table, ids in zip(self.tables, rows[:, self.numbers:].T)]
        products = [(vectors[i] * vectors[j]).sum(1, keepdim=True) for i in range(len(vectors)) for j in range(i)]
        logit = self.top(torch.cat([vectors[0], *products], 1))
        return torch.cat([0 * logit, logit], 1)


def randomise_all(model):
    """As randomise, where there are no statistics: nothing starts at zero or one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)
    return model


def randomise(model):
    """Normalisations that do something: as constructed, they would hide one that is left out or misplaced."""
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.weight.uniform_(0.5, 1.5)
                layer.bias.normal_(0, 0.2)
                layer.running_mean.normal_(0, 0.2)
                layer.running_var.uniform_(0.3, 1)
    return model
