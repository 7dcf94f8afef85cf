/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Readers that share: each has the right to grant S by itself, from the delivery of its
 * request until it sends its RELINQ. A writer (the last node) recalls all of them, and has its
 * lock when all have relinquished and what they listed is released. Node 0 may fail.
 *
 * BUG  1  a reader that comes behind the writer is let in
 *      2  a reader grants until its RELINQ is delivered
 *      3  what is held is left out of the RELINQ
 *      4  a node that left is taken for one that has relinquished
 *      5  a reader grants from the sending of its request
 *      6  the recall ends with the first RELINQ
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef ACQ
#define ACQ 1		/* S locks of each reader */
#endif
#ifndef ACQW
#define ACQW 1		/* X locks of the writer */
#endif
#define N 3
#define W 2
#define LOGN 30
#define BIT(n) (1<<(n))
mtype = {RD, WR, RELINQ, REL, XREL, FENCED, LEFT};
mtype lt[LOGN]; byte ln[LOGN]; bool lh[LOGN]; byte ll=0;
byte idx[N]; byte sh[N], held[N], rq[N]; bool rec[N], wq[N], xh[N];		/* replicated */
bool auth[N], asked[N], holds[N], sent[N], believesX=false, dead=false, cut=false; byte acq[N];
inline append(t,n,h){ lt[ll]=t; ln[ll]=n; lh[ll]=h; ll++; assert(ll<LOGN) }
inline recall(me){ if :: (sh[me]&BIT(me)) && !sent[me] -> sent[me]=true;
        if :: BUG!=2 -> auth[me]=false :: else fi;
        append(RELINQ,me,(holds[me] && BUG!=3)) :: else fi }
inline settle(me){ /* the writer's turn? */
  if :: wq[me] && (sh[me]==0 || (BUG==6 && !rec[me])) && held[me]==0 -> xh[me]=true; wq[me]=false;
        if :: me==W -> assert((dead || !holds[0]) && !holds[1]); believesX=true; acq[W]++ :: else fi
     :: else fi }
inline joins(me,n){ sh[me]=sh[me]|BIT(n);
  if :: me==n -> auth[me]=true; sent[me]=false; asked[me]=false :: else fi }
proctype node(byte me){ mtype t; byte n; bool h;
end: do
 :: atomic{ idx[me]<ll && !(me==0 && (cut || dead)) -> t=lt[idx[me]]; n=ln[idx[me]]; h=lh[idx[me]]; idx[me]++;
    if :: t==RD -> if :: (wq[me] || xh[me]) && !(BUG==1 && wq[me]) -> rq[me]=rq[me]|BIT(n) :: else -> joins(me,n) fi
       :: t==WR -> wq[me]=true; rec[me]=true; recall(me); settle(me)
       :: t==RELINQ -> sh[me]=sh[me]&(7-BIT(n)); if :: h -> held[me]=held[me]|BIT(n) :: else fi;
             if :: BUG==6 || sh[me]==0 -> rec[me]=false :: else fi;
             if :: me==n -> auth[me]=false :: else fi; settle(me)
       :: t==REL -> held[me]=held[me]&(7-BIT(n)); settle(me)
       :: t==XREL -> xh[me]=false;
             n=0; do :: n<N -> if :: rq[me]&BIT(n) -> joins(me,n) :: else fi; n++ :: else -> break od; rq[me]=0
       :: t==LEFT -> if :: BUG==4 -> sh[me]=sh[me]&(7-BIT(0)); settle(me) :: else fi
       :: t==FENCED -> sh[me]=sh[me]&(7-BIT(0)); held[me]=held[me]&(7-BIT(0)); rq[me]=rq[me]&(7-BIT(0)); settle(me)
    fi; t=0; n=0; h=0 }
 /* a reader's client: by own authority, or by asking */
 :: atomic{ me!=W && !(me==0 && dead) && !holds[me] && auth[me] && acq[me]<ACQ -> assert(!believesX); holds[me]=true; acq[me]++ }
 :: atomic{ me!=W && !(me==0 && (cut || dead)) && !holds[me] && !auth[me] && !asked[me] && !(sh[me]&BIT(me)) && acq[me]<ACQ ->
      asked[me]=true; if :: BUG==5 -> auth[me]=true :: else fi; append(RD,me,0) }
 :: atomic{ !(me==0 && dead) && holds[me] -> holds[me]=false;
      if :: !auth[me] && !(me==0 && cut) -> append(REL,me,0) :: else fi }
 /* the writer's */
 :: atomic{ me==W && !believesX && !asked[W] && acq[W]<ACQW -> asked[W]=true; append(WR,W,0) }
 :: atomic{ me==W && believesX -> believesX=false; asked[W]=false; append(XREL,W,0) }
 od }
active proctype world(){
  atomic{ if :: true -> goto out :: true -> skip fi }; atomic{ cut=true; append(LEFT,0,0) };
  atomic{ dead=true; holds[0]=false; auth[0]=false; asked[0]=false; append(FENCED,0,0) };
out: skip }
init{ atomic{ run node(0); run node(1); run node(2) } }
active proctype live(){ timeout -> assert(!wq[W] && !asked[1]) }
