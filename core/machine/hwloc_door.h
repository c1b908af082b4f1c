/* SPDX-License-Identifier: Apache-2.0
 * The machine room's one door to hwloc. */
#ifndef CCT_MACHINE_HWLOC_DOOR_H
#define CCT_MACHINE_HWLOC_DOOR_H

#include <hwloc.h>

#endif
