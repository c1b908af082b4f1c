/* SPDX-License-Identifier: Apache-2.0
 * The backends of this build. One row, and one room in CMakeLists.txt, make a backend known. */
#include <string.h>

#include "workloads/backends/backend.h"

#ifdef CCT_HAVE_BACKEND_CUDA
extern const struct cct_backend_ops cct_backend_cuda;
#endif
#ifdef CCT_HAVE_BACKEND_HOST
extern const struct cct_backend_ops cct_backend_host;
#endif
#ifdef CCT_HAVE_BACKEND_SIM
extern const struct cct_backend_ops cct_backend_sim;
#endif

const struct cct_backend_ops *const cct_backends[] = {
#ifdef CCT_HAVE_BACKEND_CUDA
    &cct_backend_cuda,
#endif
#ifdef CCT_HAVE_BACKEND_HOST
    &cct_backend_host,
#endif
#ifdef CCT_HAVE_BACKEND_SIM
    &cct_backend_sim,
#endif
    NULL,
};

const struct cct_backend_ops *cct_backend_by_name(const char *name) {
  for (int i = 0; cct_backends[i]; i++)
    if (!strcmp(cct_backends[i]->name, name))
      return cct_backends[i];
  return NULL;
}
