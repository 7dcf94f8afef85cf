/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Early release: the unlock goes into the total order and is hinted by unicast, too.
 * A waiter whose request is in its place in the queue may take the lock when all
 * that stand before it are known to have released, before the unlock is delivered.
 * (Not built yet: it is why the protocol leaves a place for it.)
 *
 * BUG  1  a node that failed is taken out of the queue before it is fenced
 *      2  a hint is taken although the own request is not delivered yet
 *      3  only the holder is looked at, not the waiters before
 */
#ifndef BUG
#define BUG 0
#endif
#ifndef ACQ
#define ACQ 1
#endif
#define N 3
#define NONE 3
#define LOGN 16
mtype={LOCK,UNLOCK,FAIL,FENCED};
mtype lt[LOGN]; byte ln[LOGN]; byte lr[LOGN]; byte ll=0;
mtype ot[N*3]; byte or_[N*3]; byte oc[N]; byte os[N];       /* outbox of each node (FIFO), 3 slots; or_=round */
byte idx[N]; byte holder[N]; byte hr[N]; byte q[N*3]; byte qr[N*3]; byte qn[N];
byte rnd[N]; bool waiting[N]; bool holds[N]; bool cut[N]; bool dead[N];
byte rel[N*N]; byte inflight[N*N];   /* rel[w*N+n]: highest round of n known released at w */
byte acqs[N];
inline app(t,n,r){ lt[ll]=t; ln[ll]=n; lr[ll]=r; ll++; assert(ll<LOGN) }
inline out(me,t,r){ ot[me*3+oc[me]]=t; or_[me*3+oc[me]]=r; oc[me]++; assert(oc[me]<=3) }
inline pop(me){ if :: qn[me]>0 -> holder[me]=q[me*3]; hr[me]=qr[me*3]; q[me*3]=q[me*3+1]; qr[me*3]=qr[me*3+1]; q[me*3+1]=q[me*3+2]; qr[me*3+1]=qr[me*3+2]; qn[me]--;
      if :: holder[me]==me && waiting[me] && hr[me]==rnd[me] -> holds[me]=true; waiting[me]=false; acqs[me]++ :: else fi
   :: else -> holder[me]=NONE; hr[me]=0 fi }
inline rmq(me,n){ i=0; do :: i>=qn[me] -> break :: else -> if :: q[me*3+i]==n -> j=i; do :: j+1>=qn[me] -> break :: else -> q[me*3+j]=q[me*3+j+1]; qr[me*3+j]=qr[me*3+j+1]; j++ od; qn[me]--; break :: else -> i++ fi od; j=0 }
proctype node(byte me){ byte i=0,j=0; bool ok; mtype t; byte n; byte r;
end: do
 :: atomic{ !dead[me] && !cut[me] && idx[me]<ll -> t=lt[idx[me]]; n=ln[idx[me]]; r=lr[idx[me]]; idx[me]++;
   if :: t==LOCK -> q[me*3+qn[me]]=n; qr[me*3+qn[me]]=r; qn[me]++; if :: holder[me]==NONE -> pop(me) :: else fi
      :: t==UNLOCK -> if :: holder[me]==n -> pop(me) :: else -> rmq(me,n) fi; if :: rel[me*N+n]<r -> rel[me*N+n]=r :: else fi
      :: t==FAIL ->
#if BUG==1
           if :: holder[me]==n -> skip :: else -> rmq(me,n) fi
#else
           skip
#endif
      :: t==FENCED -> if :: holder[me]==n -> pop(me) :: else -> rmq(me,n) fi
   fi; t=0;n=0;r=0;i=0;j=0 }
 /* client asks */
 :: atomic{ !dead[me] && !waiting[me] && !holds[me] && acqs[me]<ACQ && oc[me]<3 -> rnd[me]++; waiting[me]=true; out(me,LOCK,rnd[me]) }
 /* fast grant by hints */
 :: atomic{ !dead[me] && waiting[me] -> ok=false;
     i=0; do :: i>=qn[me] -> break :: i<qn[me] && q[me*3+i]==me && qr[me*3+i]==rnd[me] -> ok=true; break :: else -> i++ od;
#if BUG==2
     ok=true; i=0;
#endif
     if :: holder[me]!=NONE && holder[me]!=me && rel[me*N+holder[me]]>=hr[me] -> skip :: holder[me]==NONE || holder[me]==me -> ok=(BUG==2 && ok) :: else -> ok=false fi;
#if BUG!=3
     j=0; do :: j>=i -> break :: else -> if :: rel[me*N+q[me*3+j]]<qr[me*3+j] -> ok=false :: else fi; j++ od;
#endif
     if :: ok -> holds[me]=true; waiting[me]=false; acqs[me]++ :: else fi; i=0;j=0;ok=false }
 /* client unlocks: UNLOCK to outbox, hint in flight to everybody with all it knows */
 :: atomic{ !dead[me] && holds[me] && oc[me]<3 -> holds[me]=false; out(me,UNLOCK,rnd[me]); rel[me*N+me]=rnd[me];
     inflight[me*N+me]=1 }
 /* hint delivery (may never happen) to some node */
 :: atomic{ inflight[me*N+me]==1 -> if :: n=0 :: n=1 :: n=2 fi; i=0; do :: i<N -> if :: rel[n*N+i]<rel[me*N+i] -> rel[n*N+i]=rel[me*N+i] :: else fi; i++ :: else -> break od; i=0;n=0; if :: inflight[me*N+me]=0 :: skip fi }
 /* ordering: the outbox head gets its place in the total order (not when cut off) */
 :: atomic{ !dead[me] && !cut[me] && oc[me]>0 -> app(ot[me*3],me,or_[me*3]); ot[me*3]=ot[me*3+1]; or_[me*3]=or_[me*3+1]; ot[me*3+1]=ot[me*3+2]; or_[me*3+1]=or_[me*3+2]; oc[me]-- }
 od }
active proctype part(){ byte v; atomic{ if :: true -> goto o :: true -> skip fi; if :: v=0 :: v=1 fi; cut[v]=true; app(FAIL,v,0) };
  atomic{ dead[v]=true; holds[v]=false; app(FENCED,v,0) };
o: skip }
init{ byte k; atomic{ k=0; do :: k<N -> holder[k]=NONE; k++ :: else -> break od; run node(0); run node(1); run node(2) } }
active proctype mon(){ end2: do :: atomic{ (holds[0]&&holds[1])||(holds[0]&&holds[2])||(holds[1]&&holds[2]) -> assert(false) } od }
