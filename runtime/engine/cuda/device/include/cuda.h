// In front of CUDA's own cuda.h, for gorgonia.org/cu v0.9.4, which was written for CUDA 11: it puts names back that later versions
// took away, and calls of those versions' old forms.
#ifndef DISDEL_CUDA_SHIM_H
#define DISDEL_CUDA_SHIM_H
#include_next <cuda.h>
#if CUDA_VERSION >= 12000
#define CU_TARGET_COMPUTE_20 20
#define CU_TARGET_COMPUTE_21 21
#undef CUDA_KERNEL_NODE_PARAMS
#define CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_v1
#undef cuGraphAddKernelNode
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams
CUresult cuGraphAddKernelNode(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS_v1*);
CUresult cuGraphKernelNodeGetParams(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1*);
CUresult cuGraphKernelNodeSetParams(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
#endif
#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#define cuCtxCreate cuCtxCreate_v2
CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
#undef cuMemAdvise
CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);
#undef cuMemPrefetchAsync
CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
#undef cuGraphAddDependencies
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode*, const CUgraphNode*, size_t);
#undef cuGraphGetEdges
CUresult cuGraphGetEdges(CUgraph, CUgraphNode*, CUgraphNode*, size_t*);
#undef cuGraphRemoveDependencies
CUresult cuGraphRemoveDependencies(CUgraph, const CUgraphNode*, const CUgraphNode*, size_t);
#endif
#endif
