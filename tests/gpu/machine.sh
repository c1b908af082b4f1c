# SPDX-License-Identifier: Apache-2.0
# Sourced by the run.sh of each check: libraries where CUDA and distributions put them, and ranks that may be root's. NVLink
# multicast stays untouched: a failed bind can take a host's GPUs out of service, and two GPUs never use it.
for place in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/lib/x86_64-linux-gnu; do
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$place
done
export LD_LIBRARY_PATH NCCL_NVLS_ENABLE=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  OMPI_MCA_btl_vader_single_copy_mechanism=none
