/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may grant without messages: one resource, one exclusive lock, a totally
 * ordered multicast of which every node delivers a prefix, one failure that is
 * fenced before it is told. A node owns the resource by its first request, gives
 * it up when another asks (RELINQ lists what is held), the queue then decides;
 * the sole user may claim it back, an idle owner may let it go.
 *
 * Must hold: never two holders; at the end nobody waits who could go.
 *
 * N nodes, ACQ locks for each, CLAIMS and IDLES at most.
 * BUG  1  the owner grants until its RELINQ is delivered, not until it is sent
 *      2  the requester owns when it sends, not when its request is delivered
 *      3  a failure is told before the node has stopped
 *      4  the unlock of a lock that was relinquished is not multicast
 *      5  what is held is noted before the clients are stopped
 *      6  an own request is always decided locally, also when recalled
 *      7  an idle owner lets go while an own request is on its way
 *      8  the recall ends when the queue is empty, not with the RELINQ
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef ACQ
#define ACQ 2
#endif
#ifndef N
#define N 3
#endif
#ifndef CLAIMS
#define CLAIMS 2
#endif
#ifndef IDLES
#define IDLES 1
#endif
#define LOGN 24
#define UNOWNED 0
#define OWNED 1
#define ARB 2
#define NONE 3
#if BUG==7
#define IDLEOK true
#else
#define IDLEOK (inreq[me]==0)
#endif
#if BUG==6
#define SELFLOCAL true
#elif BUG==8
#define SELFLOCAL (q[me]==0)
#else
#define SELFLOCAL (!rc[me])
#endif
bool rc[N];  /* replicated RECALL flag: set by a foreign REQ on OWNED, cleared only by RELINQ or the owner's failure */
mtype = {REQ, RELINQ, UNLOCK, FAIL, CLAIM};
byte inreq[N]; byte nclaim=0; byte nidle=0;
mtype lt[LOGN]; byte ln[LOGN]; bool lh[LOGN]; byte ll=0;   /* the log */
byte idx[N]; byte st[N]; byte own[N]; byte holder[N]; byte q[N]; /* q: FIFO base-4 digits of node+1, low digit = head */
bool auth[N]; bool holds[N]; bool waiting[N]; bool relinq[N]; bool dead[N]; byte acq[N]; bool failed=false;
bool snp[N]; bool snapv[N];

inline append(t,n,h){ lt[ll]=t; ln[ll]=n; lh[ll]=h; ll++; assert(ll<LOGN) }
inline grant(me,n){ /* replicated decision; local effect only at node n */
  holder[me]=n;
  if :: (me==n) -> if :: !dead[n] -> holds[n]=true; waiting[n]=false; acq[n]++ :: else fi :: else fi }
inline popgrant(me){ if :: (q[me]!=0) -> x=(q[me]&3)-1; q[me]=q[me]>>2; grant(me,x) :: else -> holder[me]=NONE; st[me]=UNOWNED; own[me]=NONE fi }
inline enq(me,n){ if :: q[me]==0 -> q[me]=n+1 :: q[me]>0 && q[me]<4 -> q[me]=q[me]|((n+1)<<2) :: else -> q[me]=q[me]|((n+1)<<4) fi }
inline remq(me,n){ y=0; z=q[me]; w=0;
  do :: z==0 -> break :: else -> if :: ((z&3)==n+1) -> skip :: else -> y=y|((z&3)<<w); w=w+2 fi; z=z>>2 od; q[me]=y }

proctype node(byte me){ byte x=0,y=0,z=0,w=0; mtype t; byte n; bool h;
end: do
 /* deliver */
 :: atomic{ !dead[me] && idx[me]<ll -> t=lt[idx[me]]; n=ln[idx[me]]; h=lh[idx[me]]; idx[me]++; if :: t==REQ && n==me -> inreq[me]-- :: else fi;
    if
    :: t==REQ ->
       if :: st[me]==UNOWNED -> st[me]=OWNED; own[me]=n; holder[me]=NONE;
              if :: me==n -> auth[me]=true; relinq[me]=false; if :: waiting[me] -> holds[me]=true; waiting[me]=false; acq[me]++ :: else fi :: else fi
          :: st[me]==OWNED && own[me]==n && SELFLOCAL -> if :: me==n && !relinq[me] -> if :: waiting[me] && !holds[me] -> holds[me]=true; waiting[me]=false; acq[me]++ :: else fi :: else fi
          :: st[me]==OWNED && !(own[me]==n && SELFLOCAL) -> enq(me,n); rc[me]=true;
              if :: own[me]==me && !relinq[me] ->
#if BUG==5
                    snp[me]=true; snapv[me]=holds[me]   /* snapshot now, stop the fast path later (separate step) */
#else
                    relinq[me]=true;
# if BUG!=1
                    auth[me]=false;
# endif
                    append(RELINQ,me,holds[me])
#endif
                 :: else fi
          :: st[me]==ARB -> if :: holder[me]==NONE -> grant(me,n) :: else -> enq(me,n) fi
       fi
    :: t==RELINQ -> if :: st[me]==OWNED && own[me]==n -> st[me]=ARB; rc[me]=false; own[me]=NONE;
#if BUG==1
              if :: me==n -> auth[me]=false :: else fi;
#endif
              if :: h -> holder[me]=n :: else -> popgrant(me) fi :: else fi
    :: t==UNLOCK -> if :: st[me]==ARB && holder[me]==n -> popgrant(me) :: else fi
    :: t==CLAIM -> if :: st[me]==ARB && q[me]==0 && (holder[me]==n || holder[me]==NONE) -> st[me]=OWNED; own[me]=n; holder[me]=NONE;
              if :: me==n -> auth[me]=true; relinq[me]=false :: else fi :: else fi
    :: t==FAIL -> remq(me,n);
              if :: st[me]==OWNED && own[me]==n -> st[me]=ARB; rc[me]=false; own[me]=NONE; popgrant(me)
                 :: st[me]==ARB && holder[me]==n -> popgrant(me)
                 :: else fi
    fi; t=0;n=0;h=0;x=0;y=0;z=0;w=0 }
#if BUG==5
 :: atomic{ snp[me] -> snp[me]=false; relinq[me]=true; auth[me]=false; append(RELINQ,me,snapv[me]) }
#endif
 /* client lock */
 :: atomic{ !dead[me] && !holds[me] && !waiting[me] && acq[me]<ACQ && auth[me] -> holds[me]=true; acq[me]++ }       /* fast path */
 :: atomic{ !dead[me] && !holds[me] && !waiting[me] && acq[me]<ACQ && !auth[me] && !(st[me]==OWNED && own[me]==me && !relinq[me]) -> waiting[me]=true; inreq[me]++; append(REQ,me,0);
#if BUG==2
      if :: st[me]==UNOWNED -> auth[me]=true; holds[me]=true; waiting[me]=false; acq[me]++ :: else fi;
#endif
    }
 :: atomic{ !dead[me] && st[me]==ARB && holder[me]==me && nclaim<CLAIMS -> nclaim++; append(CLAIM,me,0) }
 :: atomic{ !dead[me] && st[me]==OWNED && own[me]==me && auth[me] && !relinq[me] && !holds[me] && nidle<IDLES && IDLEOK -> nidle++; relinq[me]=true; auth[me]=false; append(RELINQ,me,0) }
 /* client unlock */
 :: atomic{ !dead[me] && holds[me] -> holds[me]=false;
      if :: auth[me] -> skip
         :: !auth[me] ->
#if BUG==4
            skip
#else
            append(UNLOCK,me,0)
#endif
      fi }
 :: atomic{ dead[me] -> break }
 od }

/* voluntary idle release by owner is the same message as RELINQ(held=0); covered by REQ-triggered path */
active proctype killer(){ byte v=0;
  atomic{ if :: skip -> goto out :: (ll<LOGN-6) -> skip fi; if :: v=0 :: v=1 fi;
#if BUG!=3
    dead[v]=true; holds[v]=false; auth[v]=false;   /* fenced first ... */
#endif
    failed=true; append(FAIL,v,0) };               /* ... then reported in the total order */
out: skip }

init{ byte i; atomic{ i=0; do :: i<N -> own[i]=NONE; holder[i]=NONE; run node(i); i++ :: else -> break od } }

active proctype mon(){ end2: do :: atomic{ (holds[0]&&holds[1])||(holds[0]&&holds[N-1]&&N>2)||(holds[1]&&holds[N-1]&&N>2) -> assert(false) } od }
#ifndef NOLIVE
active proctype live(){ timeout -> assert( (dead[0] || !waiting[0]) && (dead[1] || !waiting[1]) && (dead[N-1] || !waiting[N-1]) ) }
#endif
