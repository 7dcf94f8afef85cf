/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a grant may rest on. corosync delivers a node's own message to it although
 * no other node may ever see it, and each side of a broken ring delivers, behind
 * its first hole, its own members' messages before it tells of any change.
 *
 * NS survivors (nodes 0 .. NS-1) and one victim V (= node NS), isolated at most
 * once, at any moment; one resource, one exclusive lock. Ownership as in
 * ownership.pml. Must hold: never two holders, one of them V not stopped; at the
 * end nobody waits.
 *
 * POL   0  freeze what a departed node owns, holds or waits for
 *       1  no ordered grant at all between LEFT and FENCED
 *       2  stable grants: believed when enough nodes are known to have the request;
 *          nothing is frozen, a departed node's entries stay until FENCED (belay)
 *       3  0 and 2 together
 *       4  1, but only for what no survivor held or owned at LEFT
 * NET   0  V has a private suffix; LEFT is at the end of the common part
 *       1  each side has a first hole of its own, and LEFT comes after what follows it
 * CONFFIRST 1  (not so) V learns that it is alone before it delivers anything private
 * KEEPARB   1  a free resource stays arbitrated
 * ABSACK    1  acks are no messages: one that could still arrive arrives at once
 * MERGE     1  V is not fenced; its ring joins again, it discards, then says RESET
 *           2  V discards first and its JOIN opens the new life; an old REQ comes late
 * ACQ, ACQV locks of each survivor and of V; CLAIMS, IDLES at most
 * BUG: see the places so marked; each must be caught.
 */
#ifndef POL
#define POL 2
#endif
#ifndef NET
#define NET 1
#endif
#ifndef NS
#define NS 2
#endif
#ifndef ACQ
#define ACQ 1          /* acquisitions of each survivor */
#endif
#ifndef ACQV
#define ACQV 1         /* ... of the victim */
#endif
#ifndef CLAIMS
#define CLAIMS 0
#endif
#ifndef IDLES
#define IDLES 0
#endif
#ifndef BUG
#define BUG 0
#endif
#ifndef CONFFIRST
#define CONFFIRST 0
#endif
#ifndef KEEPARB
#define KEEPARB 0
#endif
#ifndef EAGER
#define EAGER 0        /* 1: an ack leaves at once (smaller), 0: whenever */
#endif
#ifndef ABSACK
#define ABSACK 0       /* 1: acks are not messages; an ack that could still reach the requester arrives at once (earliest belief) */
#endif
#ifndef MERGE
#define MERGE 0        /* 1: V is not fenced; its ring joins, then it discards its state and starts a new life by an ordered RESET
                          2: V discards first, and its JOIN starts the new life; a REQ queued in the former life arrives after it */
#endif
#if BUG==20
#define EPOCH false    /* BUG 20: messages carry no incarnation of their sender */
#else
#define EPOCH true
#endif
#ifndef VVIEW
#define VVIEW (NS==1 || BUG==16)   /* V also gets its own, singleton view */
#endif
#ifndef LATEFENCE
#define LATEFENCE 0
#endif
#ifndef LOGN
#define LOGN (12+7*MERGE)
#endif
#define N (NS+1)
#define V NS
#define NONE 3
#define INF 255
#define UNOWNED 0
#define OWNED 1
#define ARB 2
#define B (POL==2 || POL==3)
mtype = {REQ, RELINQ, UNLOCK, CLAIM, ACK, LEFT, FENCED, JOIN, RESET};
#define CONF(t) (t==LEFT || t==FENCED || t==JOIN)
/* one global order; entries everybody has delivered are removed, so positions are relative */
mtype lt[LOGN]; byte ln[LOGN]; bool lh[LOGN]; byte lm[LOGN]; byte ll=0;  /* lm: acks carried: bit n = "I delivered n's latest request" */
byte gS=INF, gV=INF;     /* first hole of the survivors / of V: behind it the other side's messages do not exist */
byte idx[N];
bool lo[LOGN];           /* sent in V's first life, or (BUG 23) by a survivor that had not delivered LEFT yet */
bool vstall=false, life2=false, fl[N];
byte st[N], own[N], holder[N], q[N]; bool rc[N], lft[N], fen[N];         /* replicated state */
bool auth[N], holds[N], waiting[N], relinq[N], dead[N], need[N]; byte inreq[N], acq[N];  /* local state */
byte dl[N], ackm[N], lp[N];  /* dl: whose latest request I delivered; ackm: who acked mine; lp: place of my latest request */
byte nclaim=0, nidle=0; byte k;

#define BIT(n) (1<<(n))
#define CNT(m) (((m)&1)+(((m)>>1)&1)+(((m)>>2)&1))
#if NS==1 && BUG!=16
#define NEED(me) (fen[me] -> 1 : 2)        /* two-node: quorum is no majority, so every node not fenced must ack */
#elif NS==1
#define NEED(me) (lft[me] -> 1 : 2)        /* BUG 16: majority of the current view */
#elif BUG==16
#define NEED(me) ((me==V && lft[V]) -> 1 : 2)   /* BUG 16: majority of the current view */
#elif BUG==17
#define NEED(me) 1                         /* BUG 17: own delivery is enough */
#else
#define NEED(me) (N/2+1)
#endif
#define STABLE(me) (!B || CNT(ackm[me])>=NEED(me))
#if BUG==12
#define STABLEA(me) true                   /* BUG 12: authority (UNOWNED->OWNED, CLAIM) without stability */
#else
#define STABLEA(me) STABLE(me)
#endif
#if BUG==13
#define STABLEH(me) true                   /* BUG 13: ARB grant without stability */
#else
#define STABLEH(me) STABLE(me)
#endif
#define VINQ(me) ((q[me]&3)==V+1 || ((q[me]>>2)&3)==V+1 || ((q[me]>>4)&3)==V+1)
#define WIN(me) (lft[me] && !fen[me])      /* between LEFT and FENCED */
#if POL==1
#define FRZ(me) WIN(me)
#elif POL==4
#define FRZ(me) (WIN(me) && fl[me])      /* freeze only what no survivor held or owned at LEFT */
#elif POL==0 || POL==3
#define FRZ(me) (WIN(me) && (own[me]==V || holder[me]==V || VINQ(me)))
#else
#define FRZ(me) false
#endif
#define FRZ1(me) (FRZ(me) && BUG!=1)       /* BUG 1: first touch (UNOWNED -> OWNED) not frozen */
#define FRZ2(me) (FRZ(me) && BUG!=2)       /* BUG 2: REQ on a free ARB not frozen */
#define FRZ3(me) (FRZ(me) && BUG!=3)       /* BUG 3: grant scan after RELINQ / UNLOCK not frozen */
#define FRZ4(me) (FRZ(me) && BUG!=4)       /* BUG 4: CLAIM not frozen */
/* V is isolated and knows it (only with CONFFIRST): it grants nothing any more */
#define VSTOP(me) (CONFFIRST && me==V && gS!=INF && idx[V]>gS)
/* who may deliver the entry at position p, and when may a side step over its own hole: once the other side is cut off too */
#define DELIV(me,p) ((me==V) -> ((!CONF(lt[p]) || life2) && (ln[p]==V || p<gV)) : (CONF(lt[p]) || ln[p]!=V || p<gS))
#define MAY(me) (idx[me]<ll && !(me==V && (vstall || dead[V])) && ((me==V) -> (idx[me]<gV || gS!=INF) : (idx[me]<gS || gV!=INF)))

#define VOIDACK(me,p) (lt[p]==ACK && (!(lm[p]&BIT(me)) || ackm[me]==7 || (ackm[me]&BIT(ln[p]))))   /* would change nothing */
#define ASK(x,me) (x!=me && (dl[me]&BIT(x)) && ackm[x]!=7)
inline norm(){ /* step over entries that are undeliverable or void; drop entries delivered by all */
  k=0; do :: k<N -> do :: MAY(k) && (!DELIV(k,idx[k]) || VOIDACK(k,idx[k])) -> idx[k]++ :: else -> break od;
                    if :: B && need[k] && !(ASK(0,k) || ASK(1,k) || ASK(NS,k)) -> need[k]=false :: else fi;   /* an ack nobody needs */
                    k++ :: else -> break od;
  do :: ll>0 && idx[0]>0 && (dead[V] || vstall || idx[V]>0) && (NS==1 || idx[NS-1]>0) ->
        k=1; do :: k<ll -> lt[k-1]=lt[k]; ln[k-1]=ln[k]; lh[k-1]=lh[k]; lm[k-1]=lm[k]; lo[k-1]=lo[k]; k++ :: else -> break od;
        ll--; lt[ll]=0; lo[ll]=false; ln[ll]=0; lh[ll]=0; lm[ll]=0;
        k=0; do :: k<N -> if :: idx[k]>0 -> idx[k]-- :: else fi;
                          if :: lp[k]==0 -> lp[k]=INF :: lp[k]>0 && lp[k]<INF -> lp[k]-- :: else fi; k++ :: else -> break od;
        if :: gS!=INF && gS>0 -> gS-- :: else fi; if :: gV!=INF && gV>0 -> gV-- :: else fi
     :: else -> break od; k=0 }
inline append(t,n,h){ /* n multicasts; every message carries n's acks */
  if :: B && (t==REQ || t==CLAIM) -> /* a new request: acks of the former one do not count */
        k=0; do :: k<N -> dl[k]=dl[k]&(7-BIT(n)); k++ :: else -> break od;
        k=0; do :: k<ll -> lm[k]=lm[k]&(7-BIT(n)); k++ :: else -> break od;
        ackm[n]=0; lp[n]=ll
     :: else fi;
  lt[ll]=t; ln[ll]=n; lh[ll]=h;
#if MERGE
  lo[ll]=(n==V && !life2 && t!=JOIN && t!=RESET);
#elif BUG==23
  lo[ll]=(n!=V && !lft[n] && !CONF(t));
#endif
  if :: B && !CONF(t) -> lm[ll]=dl[n]; need[n]=false :: else fi;
  ll++; assert(ll<LOGN) }
inline believe(me){ /* the lock is given to the client: mutual exclusion is checked here */
  assert(!holds[0] && !holds[1] && !holds[N-1]); holds[me]=true; waiting[me]=false; acq[me]++;
#ifdef REACH
  assert(!(me==V && life2))     /* must be violated: the second life does lock */
#endif
  }
inline settle(me){ /* what me may believe now */
  if :: B && ackm[me]!=0 && CNT(ackm[me])>=NEED(me) -> ackm[me]=7 :: else fi;      /* stable once is stable for good */
  if :: VSTOP(me) -> skip :: else ->
    if :: st[me]==OWNED && own[me]==me && !relinq[me] && !auth[me] && STABLEA(me) -> auth[me]=true :: else fi;
    if :: waiting[me] && inreq[me]==0 && auth[me] -> believe(me)
       :: waiting[me] && inreq[me]==0 && !auth[me] && st[me]==ARB && holder[me]==me && STABLEH(me) -> believe(me)
       :: else fi fi }
inline enq(me,n){ if :: q[me]==0 -> q[me]=n+1 :: q[me]>0 && q[me]<4 -> q[me]=q[me]|((n+1)<<2) :: else -> q[me]=q[me]|((n+1)<<4) fi }
inline remq(me,n){ y=0; z=q[me]; w=0;
  do :: z==0 -> break :: else -> if :: ((z&3)==n+1) -> skip :: else -> y=y|((z&3)<<w); w=w+2 fi; z=z>>2 od; q[me]=y; y=0; w=0 }
inline scan(me){ /* holder is gone: head of the queue gets it */
  if :: FRZ3(me) -> skip
     :: else -> if :: q[me]!=0 -> st[me]=ARB; holder[me]=(q[me]&3)-1; q[me]=q[me]>>2
                   :: q[me]==0 && !KEEPARB -> st[me]=UNOWNED :: else fi fi }
inline dropv(me){ /* V's locks, authority and requests die */
  remq(me,V);
  if :: st[me]==OWNED && own[me]==V -> st[me]=ARB; rc[me]=false; own[me]=NONE; scan(me)
     :: st[me]==ARB && holder[me]==V -> holder[me]=NONE; scan(me)
     :: holder[me]==NONE && own[me]==NONE && q[me]!=0 -> scan(me)   /* what the freeze held back */
     :: else fi }

proctype node(byte me){ byte y=0,z=0,w=0; mtype t; byte n; bool h;
end: do
 :: atomic{ !dead[me] && MAY(me) -> t=lt[idx[me]]; n=ln[idx[me]]; h=lh[idx[me]];
    if :: B && n!=me && !CONF(t) && (lm[idx[me]]&BIT(me)) -> ackm[me]=ackm[me]|BIT(n) :: else fi;  /* n acks my request */
    if :: B && (t==REQ || t==CLAIM) && lp[n]==idx[me] ->
            if :: n==me -> ackm[me]=ackm[me]|BIT(me)
#if ABSACK
               :: n!=me && !dead[n] && ((me==V) -> gS : ((n==V) -> (vstall -> 0 : gV) : INF))==INF -> ackm[n]=ackm[n]|BIT(me); settle(n)
               :: else
#else
               :: else -> dl[me]=dl[me]|BIT(n); need[me]=true
#endif
            fi :: else fi;
    if :: t==REQ && n==me && inreq[me]>0 -> inreq[me]-- :: else fi;
    idx[me]++;
#if MERGE
    /* a closed life's messages are dropped: after LEFT, and for a late FENCED after RESET */
    w=(EPOCH && t!=LEFT && lo[idx[me]-1] && (fl[me] || (t!=FENCED && lft[me]) || (t==FENCED && BUG!=22 && !lft[me])));
#elif BUG==23
    w=(lo[idx[me]-1] && lft[me]);          /* BUG 23: strict configuration epoch, what crossed the change is dropped and not sent again */
#endif
    if
    :: w==1 -> skip
    :: w==0 && t==JOIN ->
#if MERGE==2
       dropv(me); fen[me]=false; lft[me]=false; fl[me]=true;
       if :: me==0 -> st[V]=st[0]; own[V]=own[0]; holder[V]=holder[0]; q[V]=q[0]; rc[V]=rc[0]; idx[V]=idx[0]; dead[V]=false; acq[V]=0; fl[V]=true
          :: else fi
#elif BUG==21
       fen[me]=true; dropv(me)              /* BUG 21: the join itself is taken as proof that the former life is over */
#else
       skip
#endif
    :: w==0 && t==RESET -> dropv(me); fen[me]=false; lft[me]=false;
       if :: me==0 -> /* V's snapshot, at this place of the order */
             st[V]=st[0]; own[V]=own[0]; holder[V]=holder[0]; q[V]=q[0]; rc[V]=rc[0]; idx[V]=idx[0]; dead[V]=false; acq[V]=0
          :: else fi
    :: w==0 && t==REQ ->
       if :: st[me]==UNOWNED && !FRZ1(me) && q[me]==0 -> st[me]=OWNED; own[me]=n; rc[me]=false; if :: n==me -> relinq[me]=false :: else fi
          :: st[me]==UNOWNED && (FRZ1(me) || q[me]!=0) -> enq(me,n)
          :: st[me]==OWNED && own[me]==n && !rc[me] -> skip                        /* rule 2: runs locally, see settle */
          :: st[me]==OWNED && !(own[me]==n && !rc[me]) -> enq(me,n); rc[me]=true;
              if :: own[me]==me && !relinq[me] -> relinq[me]=true; auth[me]=false;
#if BUG==14
                    append(RELINQ,me,holds[me])                                      /* BUG 14: a grant not yet believed is left out of held */
#else
                    append(RELINQ,me,(holds[me] || (waiting[me] && inreq[me]==0)))  /* held includes a grant not yet believed */
#endif
                 :: else fi
          :: st[me]==ARB && holder[me]==NONE && q[me]==0 && !FRZ2(me) -> holder[me]=n
          :: st[me]==ARB && !(holder[me]==NONE && q[me]==0 && !FRZ2(me)) -> enq(me,n)
       fi
    :: w==0 && t==RELINQ -> if :: st[me]==OWNED && own[me]==n -> st[me]=ARB; rc[me]=false; own[me]=NONE;
              if :: h -> holder[me]=n :: else -> holder[me]=NONE; scan(me) fi :: else fi
    :: w==0 && t==UNLOCK -> if :: st[me]==ARB && holder[me]==n -> holder[me]=NONE; scan(me) :: else fi
    :: w==0 && t==CLAIM -> if :: st[me]==ARB && q[me]==0 && (holder[me]==n || holder[me]==NONE) && !FRZ4(me) ->
              st[me]=OWNED; own[me]=n; rc[me]=false; holder[me]=NONE; if :: me==n -> relinq[me]=false :: else fi :: else fi
    :: w==0 && t==ACK -> skip
    :: w==0 && t==LEFT -> if :: me==V -> skip :: else -> lft[me]=true fi;
#if POL==4
              fl[me]=!((st[me]==OWNED && own[me]!=V) || (st[me]==ARB && holder[me]!=NONE && holder[me]!=V));
#endif
#if BUG==5
              remq(me,V)                        /* BUG 5: V's waiting requests removed at LEFT */
#elif BUG==6
              fen[me]=true; dropv(me)           /* BUG 6: LEFT treated as FENCED */
#endif
    :: w==0 && t==FENCED -> fen[me]=lft[me]; dropv(me)
    fi; settle(me); norm();
#if EAGER
    if :: B && need[me] -> append(ACK,me,0); norm() :: else fi;
#endif
    t=0;n=0;h=0;y=0;z=0;w=0 }
 /* the client: lock by own authority, lock by request, unlock */
 :: atomic{ !dead[me] && !VSTOP(me) && !holds[me] && !waiting[me] && acq[me]<((me==V)->ACQV:ACQ) && auth[me] -> believe(me) }
 :: atomic{ !dead[me] && !holds[me] && !waiting[me] && acq[me]<((me==V)->ACQV:ACQ) && !auth[me] && !(st[me]==OWNED && own[me]==me && !relinq[me])
      -> waiting[me]=true; inreq[me]++; append(REQ,me,0); norm() }
 :: atomic{ !dead[me] && holds[me] -> holds[me]=false; if :: auth[me] -> skip :: else -> append(UNLOCK,me,0); norm() fi }
#if CLAIMS
 :: atomic{ !dead[me] && st[me]==ARB && (holder[me]==me || (KEEPARB && holder[me]==NONE)) && !waiting[me] && inreq[me]==0 && nclaim<CLAIMS
      -> nclaim++; append(CLAIM,me,0); norm() }
#endif
#if IDLES
 :: atomic{ !dead[me] && st[me]==OWNED && own[me]==me && auth[me] && !relinq[me] && !holds[me] && inreq[me]==0 && nidle<IDLES
      -> nidle++; relinq[me]=true; auth[me]=false; append(RELINQ,me,0); norm() }
#endif
#if (POL==2 || POL==3) && !EAGER
 :: atomic{ !dead[me] && need[me] -> append(ACK,me,0); norm() }
#endif
#if !MERGE
 :: atomic{ dead[me] -> break }
#endif
 od }

active proctype ring(){ byte i=0;
  /* at most one isolation of V, at any moment; then LEFT, then (V certainly stopped) FENCED */
  atomic{ if :: true -> goto out :: true -> skip fi };
#if NET==0
  atomic{ gS=ll; gV=ll; append(LEFT,V,0); norm() };
#else
  if :: atomic{ true -> gS=ll; norm() }; atomic{ gV=ll; norm() }
     :: atomic{ true -> gV=ll; norm() }; atomic{ gS=ll; norm() } fi;
  atomic{ append(LEFT,V,0); norm() };
#endif
#if VVIEW
  if :: atomic{ true -> lft[V]=true; settle(V); norm() } :: skip fi;
#endif
#define STOPV dead[V]=true; lft[V]=false; holds[V]=false; auth[V]=false; waiting[V]=false; rc[V]=false; relinq[V]=false; need[V]=false; inreq[V]=0; acq[V]=0; \
  st[V]=0; own[V]=NONE; holder[V]=NONE; q[V]=0; dl[V]=0; ackm[V]=0; lp[V]=INF; idx[V]=0; \
  k=0; do :: k<N -> dl[k]=dl[k]&(7-BIT(V)); k++ :: else -> break od; k=0; do :: k<ll -> lm[k]=lm[k]&(7-BIT(V)); k++ :: else -> break od
#if MERGE
  /* V's ring joins the survivors': V's private messages are gone; V has not noticed yet and goes on sending (stale messages) */
  atomic{ k=gS; do :: k<ll -> if :: ln[k]==V && !CONF(lt[k]) ->
             i=k; do :: i+1<ll -> lt[i]=lt[i+1]; ln[i]=ln[i+1]; lh[i]=lh[i+1]; lm[i]=lm[i+1]; lo[i]=lo[i+1]; i++ :: else -> break od;
             ll--; lt[ll]=0; ln[ll]=0; lh[ll]=0; lm[ll]=0; lo[ll]=0;
             i=0; do :: i<N -> if :: idx[i]>k -> idx[i]-- :: else fi;
                               if :: lp[i]==k -> lp[i]=INF :: lp[i]>k && lp[i]<INF -> lp[i]-- :: else fi; i++ :: else -> break od; i=0
             :: else -> k++ fi :: else -> break od;
          k=0; gS=INF; gV=INF;
# if MERGE==2
          i=(inreq[V]>0 || waiting[V]); STOPV; life2=true; append(JOIN,V,0);
          if :: i -> append(REQ,V,0); lo[ll-1]=true :: true fi; i=0; norm() };
  goto out;
# else
          vstall=true; append(JOIN,V,0); norm() };
  /* V sees its own configuration change: its clients lose their locks, it forgets all, and says so in its new life */
  atomic{ STOPV; life2=true; vstall=false; append(RESET,V,0); norm() };
# if LATEFENCE
  atomic{ append(FENCED,V,0); lo[ll-1]=true; norm() };      /* a fencing report of the former life comes late */
# endif
# endif
#elif BUG==7
  atomic{ append(FENCED,V,0); norm() };         /* BUG 7: FENCED sent before V has stopped */
  atomic{ STOPV; norm() };
#else
  atomic{ STOPV; append(FENCED,V,0); norm() };
#endif
out: skip }

init{ byte i; atomic{ i=0; do :: i<N -> own[i]=NONE; holder[i]=NONE; lp[i]=INF; run node(i); i++ :: else -> break od; i=0 } }
active proctype live(){ timeout -> assert(!waiting[0] && !waiting[NS-1] && !waiting[V]) }
