/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why the waiting requests of a node that left keep their place until it is
 * fenced. Shared and exclusive; grants are stable; the survivors' table against V's.
 * Before the cut all have delivered: V's c1 holds S, V's c2 waits for X (stable). V
 * then releases c1 by a message that nobody else gets.
 *
 * BUG  1  LEFT removes V's waiters
 *      2  LEFT removes V's holders, too
 *      3  a later S passes an earlier, queued X
 */
#ifndef BUG
#define BUG 0
#endif
bool vS=true, vX=false, sS=false, cut=false, dead=false, priv=false;   /* beliefs */
bool hV=true, qV=true, qs=false, left=false, fen=false;                 /* survivors' table: V.c1 S held, V.c2 X queued, s queued */
inline scan(){ if :: qs && (!qV || BUG==3) -> sS=true; qs=false; assert(dead || !vX) :: else fi }
active proctype victim(){
end: do
 :: atomic{ cut && !dead && vS -> vS=false; priv=true }                          /* REL(c1): private, self-delivered */
 :: atomic{ !dead && priv && !vS && !vX -> assert(!sS); vX=true }               /* c2 is stable: V grants X at its own delivery of REL */
 :: atomic{ !dead && vX -> vX=false; priv=false }
 :: atomic{ dead -> break } od }
active proctype surv(){ bool asked=false;
end: do
 :: atomic{ !asked -> asked=true; qs=true; scan() }                                      /* s asks for S */
 :: atomic{ cut && !left -> left=true;
      if :: BUG==1 || BUG==2 -> qV=false :: else fi; if :: BUG==2 -> hV=false :: else fi; scan() }
 :: atomic{ left && !fen && dead -> fen=true; hV=false; qV=false; scan() }
 od }
active proctype world(){ cut=true; atomic{ left -> dead=true; vS=false; vX=false } }
active proctype live(){ timeout -> assert(!qs) }
