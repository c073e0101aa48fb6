// What is used of LAPACK. Matrices are stored by columns.
#pragma once

#include <cstddef>

// Singular values, and with job "S" vectors, by divide and conquer.
extern "C" void sgesdd_(const char* job, const int* m, const int* n, float* a, const int* lda, float* s,
                        float* u, const int* ldu, float* vt, const int* ldvt, float* work, const int* lwork,
                        int* iwork, int* info, std::size_t job_length);
