/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client takes locks in memory it shares with belayd; belayd recalls them. Two
 * processors with store buffers, as x86 has them. May both believe that they
 * have the lock? Does belayd see what the client committed last?
 *
 * VARIANT 0  two flags, no fence on the client's side: fails
 *         1  the client has a fence, too
 *         2  no fence, but belayd makes the client's processor drain its buffer
 *         3  one word with a busy bit, changed by compare-and-swap
 *         4  one word; the client prepares a copy, and the swap of the word is the
 *            grant (what belay does)
 */
#ifndef VARIANT
#define VARIANT 0
#endif
byte busy=0, recall=0;      /* memory */
bool sb_valid=false; byte sb_val=0;   /* client's store buffer for 'busy' (one entry is enough) */
byte word=0;                /* variant 3: bit0 busy, bit1 recall ; variant 4: bit1 recall, bits 2.. version */
bool client_in=false, daemon_in=false;
bool held=false;            /* a lock recorded as held by client */
bool daemon_view=false;     /* what daemon read */
byte rounds=0;

inline st_busy(v){ if :: atomic{ !sb_valid -> sb_valid=true; sb_val=v } fi }
inline drain(){ atomic{ if :: sb_valid -> busy=sb_val; sb_valid=false :: else -> skip fi } }

active proctype flusher(){ /* nondeterministic drain of the store buffer */
end: do :: atomic{ sb_valid -> busy=sb_val; sb_valid=false } od }

active proctype client(){ byte r;
end: do
 :: rounds<3 -> rounds++;
#if VARIANT<=2
    st_busy(1);
# if VARIANT==1
    drain();
# endif
    r=recall;
    if :: r==0 -> client_in=true; assert(!daemon_in); held=!held; client_in=false
       :: else -> skip fi;
    st_busy(0)
#elif VARIANT==3
    atomic{ if :: word==0 -> word=1; r=1 :: else -> r=0 fi };
    if :: r==1 -> client_in=true; assert(!daemon_in); held=!held; client_in=false; atomic{ word=word&2 }
       :: else -> skip fi
#else
    byte w; byte nh;
    w=word;
    if :: (w&2) -> skip
       :: else -> nh=1-held; /* prepared in inactive buffer */
          atomic{ if :: word==w -> word=w+4; held=nh; assert(!daemon_in) :: else -> skip fi }
    fi
#endif
 od }

active proctype daemon(){
#if VARIANT<=2
    recall=1;  /* x86: followed by full fence on daemon side */
# if VARIANT==2
    drain();   /* membarrier: every registered thread executes a full barrier */
# endif
    (busy==0);
#elif VARIANT==3
    atomic{ word=word|2 }; ((word&1)==0);
#else
    atomic{ word=word|2 };
#endif
    daemon_in=true; assert(!client_in); daemon_view=held; assert(!client_in);
    assert(daemon_view==held);
    daemon_in=false;
}
