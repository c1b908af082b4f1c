/* SPDX-License-Identifier: Apache-2.0
 * The caller's own sums as MPI's operations. */
#include "base/log.h"
#include "mpi_runner/mpi_door.h"

/* A user's MPI operation is told only the datatype, so that the sum to use travels as an attribute of a datatype that
 * is made once for each (sum, element size) and kept until MPI ends. */
static struct summed {
  cct_combine_fn *combine;
  size_t element_bytes;
  MPI_Datatype type;
} summed[64]; /* more than types times operations */
static int n_summed, combine_key = MPI_KEYVAL_INVALID;
static MPI_Op combine_op = MPI_OP_NULL;

static void combine(void *in, void *inout, int *count, MPI_Datatype *type) {
  const struct summed *entry = NULL;
  int is_found = 0;
  MPI_Type_get_attr(*type, combine_key, &entry, &is_found);
  if (is_found)
    entry->combine(inout, in, (size_t)*count);
}

static enum cct_status summed_type(cct_combine_fn *fn, size_t element_bytes, MPI_Datatype *type_out) {
  for (int i = 0; i < n_summed; i++)
    if (summed[i].combine == fn && summed[i].element_bytes == element_bytes) {
      *type_out = summed[i].type;
      return CCT_OK;
    }
  if (n_summed == (int)(sizeof summed / sizeof *summed))
    return cct_fail(CCT_UNSUPPORTED, "more than %d different sums in one process", n_summed);
  struct summed *entry = &summed[n_summed];
  *entry = (struct summed){fn, element_bytes, MPI_DATATYPE_NULL};
  enum cct_status status = CCT_OK;
  if (combine_op == MPI_OP_NULL) {
    status = cct_mpi_check(MPI_Op_create(combine, 1, &combine_op), "MPI_Op_create");
    if (!status)
      status = cct_mpi_check(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &combine_key, NULL),
                             "MPI_Type_create_keyval");
  }
  if (!status)
    status = cct_mpi_check(MPI_Type_contiguous((int)element_bytes, MPI_BYTE, &entry->type), "MPI_Type_contiguous");
  if (!status)
    status = cct_mpi_check(MPI_Type_commit(&entry->type), "MPI_Type_commit");
  if (!status)
    status = cct_mpi_check(MPI_Type_set_attr(entry->type, combine_key, entry), "MPI_Type_set_attr");
  if (status)
    return status;
  n_summed++;
  *type_out = entry->type;
  return CCT_OK;
}

void cct_mpi_free_sums(void) {
  for (int i = 0; i < n_summed; i++)
    MPI_Type_free(&summed[i].type);
  if (combine_key != MPI_KEYVAL_INVALID)
    MPI_Type_free_keyval(&combine_key);
  if (combine_op != MPI_OP_NULL)
    MPI_Op_free(&combine_op);
  n_summed = 0;
}

enum cct_status cct_mpi_reduce(const struct cct_world *w, void *buf, size_t count, size_t element_bytes,
                               cct_combine_fn *fn, enum cct_result_at where, MPI_Request *request) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Comm comm = cct_mpi_comm(w);
  enum cct_status status = cct_mpi_check_bytes(count, "MPI_Reduce");
  if (!status)
    status = summed_type(fn, element_bytes, &type);
  if (status)
    return status;
  int n = (int)count, part = n / w->size;
  const void *send = where == CCT_RESULT_ROOT && w->rank ? buf : MPI_IN_PLACE;
  void *recv = where == CCT_RESULT_ROOT && w->rank ? NULL : buf;
  switch (where) {
  case CCT_RESULT_ALL:
    return cct_mpi_check(request ? MPI_Iallreduce(send, recv, n, type, combine_op, comm, request)
                                 : MPI_Allreduce(send, recv, n, type, combine_op, comm),
                         "MPI_Allreduce");
  case CCT_RESULT_ROOT:
    return cct_mpi_check(request ? MPI_Ireduce(send, recv, n, type, combine_op, 0, comm, request)
                                 : MPI_Reduce(send, recv, n, type, combine_op, 0, comm),
                         "MPI_Reduce");
  case CCT_RESULT_SCATTER:
    break;
  }
  if (part * w->size != n)
    return cct_fail(CCT_USAGE, "reduce-scatter of %d elements over %d processes", n, w->size);
  return cct_mpi_check(request ? MPI_Ireduce_scatter_block(send, recv, part, type, combine_op, comm, request)
                               : MPI_Reduce_scatter_block(send, recv, part, type, combine_op, comm),
                       "MPI_Reduce_scatter_block");
}
