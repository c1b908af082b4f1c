/* SPDX-License-Identifier: Apache-2.0
 * A function of a library opened by dlopen, or NULL. ISO C has no conversion from dlsym's pointer to a function's;
 * POSIX asks for this copy. Include dlfcn.h before use. */
#ifndef CCT_MACHINE_LOOK_UP_H
#define CCT_MACHINE_LOOK_UP_H

#define LOOK_UP(library, name, call) (*(void **)&(call) = dlsym((library), (name)))

#endif
