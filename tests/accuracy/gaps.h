/* SPDX-License-Identifier: Apache-2.0 */
/* The cycles that NVIDIA's compiler leaves between dependent instructions, for latencies.py. */
#ifndef PLUMB_ACCURACY_GAPS_H
#define PLUMB_ACCURACY_GAPS_H

/* Prints, of the modules of COUNT files:
 *
 *	gap ARCHITECTURE OPERATION PIPE FILE READER CYCLES PAIRS AT PLUMB
 *		OPERATION (and its registers, of matrices), its pipe, and the file of what it
 *		writes. READER is the pipe of what reads it, or "guard". CYCLES is the fewest
 *		between them, of PAIRS pairs, of which AT have so few. PLUMB is what the decoder
 *		says; 0: unknown.
 *	signals ARCHITECTURE OPERATION INSTRUCTIONS WITH
 *		how many instructions have a signal for their result
 */
int gaps_print(char **files, int count);

#endif
