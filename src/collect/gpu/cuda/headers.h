/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's and CUPTI's own headers (13.0), types and numbers only: nothing of CUDA is linked.
 *
 * CUPTI's headers pull in CUDA's C++ vector and driver types, which in turn need a compiler's
 * headers that come in a third package. Nothing here uses those types, so they are left out.
 */
#ifndef PLUMB_COLLECT_GPU_CUDA_HEADERS_H
#define PLUMB_COLLECT_GPU_CUDA_HEADERS_H

#define __DEVICE_TYPES_H__
#define __DRIVER_TYPES_H__
#define __SURFACE_TYPES_H__
#define __TEXTURE_TYPES_H__
#define __VECTOR_TYPES_H__

/* Parameters of functions from before CUDA 4, which only their own headers name. */
typedef unsigned int CUdeviceptr_v1;
typedef struct CUDA_MEMCPY2D_v1 CUDA_MEMCPY2D_v1;
typedef struct CUDA_MEMCPY3D_v1 CUDA_MEMCPY3D_v1;
typedef struct CUDA_ARRAY_DESCRIPTOR_v1 CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1 CUDA_ARRAY3D_DESCRIPTOR_v1;

#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_pcsampling.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <generated_cuda_meta.h>

#endif
