/*
 * Holds of one concurrency rule, counted in slots of time: a ring of SLOTS + 1 counters, of which the
 * current one and the SLOTS before it count. A permit keeps the slot it was counted in and the
 * generation of its row. A hold lasts as long as SLOTS slots, from any instant of a slot (here its
 * beginning or its middle), and its units come back at most one slot later.
 *
 * Holders acquire, release (once or twice, early or late), extend, or die; the row is lost at any time
 * (reset, clear, eviction, an engine that restarts). Checked:
 *   - the holders that are alive, unexpired and of this generation of the row are at most LIMIT;
 *   - the row counts at least as many as those: a release frees no other holder's unit;
 *   - SLOTS + 1 slots after the last acquire everything is free again.
 *
 * Variants that must fail: NO_GENERATION (a release after the row was lost frees a stranger's unit),
 * NO_EXPIRY_CHECK (a release after the hold ended does), SHORT_RING (the oldest slot goes one too
 * early), FORGOTTEN (units of holders that die never come back).
 */
#define LIMIT 2
#define SLOTS 2
#define RING 3
#define HOLDERS 3
#define HALVES 10

/* The time in half slots, and in slots; the newest slot of the ring. */
byte halves, now, latest, generation, count[RING];
/* What each holder's permit says, and whether it still holds by its own clock. */
byte slot[HOLDERS], since[HOLDERS], permit_generation[HOLDERS];
bool holds[HOLDERS];
byte held, i, steps;

/* Turns the ring to the current slot: what is older counts no more. */
inline turn() {
#ifndef FORGOTTEN
  do
  :: latest < now -> latest++; count[latest % RING] = 0;
#ifdef SHORT_RING
     count[(latest + 1) % RING] = 0
#endif
  :: else -> break
  od
#else
  latest = now
#endif
}

inline sum() { held = count[0] + count[1] + count[2] }

inline acquire(h) {
  turn(); sum();
  if
  :: held < LIMIT && !holds[h] ->
    count[now % RING]++; slot[h] = now; since[h] = halves; permit_generation[h] = generation; holds[h] = true
  :: else -> skip
  fi
}

inline release(h) {
  turn();
  if
#ifndef NO_GENERATION
  :: permit_generation[h] != generation -> skip
#endif
#ifndef NO_EXPIRY_CHECK
  :: now > slot[h] + SLOTS -> skip
#endif
  :: else ->
    if
    :: count[slot[h] % RING] > 0 -> count[slot[h] % RING]--
    :: else -> skip
    fi
  fi;
  /* A permit is given back once: later calls do nothing. */
  holds[h] = false; permit_generation[h] = 255
}

inline extend(h) {
  turn();
  if
  :: permit_generation[h] == generation && now <= slot[h] + SLOTS && count[slot[h] % RING] > 0 ->
    count[slot[h] % RING]--; count[now % RING]++; slot[h] = now; since[h] = halves
  :: else -> skip
  fi
}

/* Holders of this generation whose hold has not ended. */
inline check_all() {
  held = 0;
  for (i : 0 .. HOLDERS - 1) {
    if
    :: holds[i] && permit_generation[i] == generation && halves < since[i] + 2 * SLOTS -> held++
    :: else -> skip
    fi
  }
  assert(held <= LIMIT);
  assert(held <= count[0] + count[1] + count[2])
}

active proctype world() {
  byte h;
  permit_generation[0] = 255; permit_generation[1] = 255; permit_generation[2] = 255;
  do
  :: halves < HALVES -> atomic { halves++; now = halves / 2; turn(); check_all() }
  :: steps < 6 ->
    steps++;
    select(h : 0 .. HOLDERS - 1);
    if
    :: true -> atomic { acquire(h); check_all() }
    :: true -> atomic { permit_generation[h] != 255 -> release(h); check_all() }
    :: true -> atomic { holds[h] -> extend(h); check_all() }
    :: true -> atomic {
      /* The row is lost, and the next one is of another generation. */
      generation++; latest = now; count[0] = 0; count[1] = 0; count[2] = 0; check_all()
    }
    :: true -> skip /* The holder dies, or waits. */
    fi
  :: else -> break
  od;
  /* Long after the last acquire. */
  atomic { now = now + SLOTS + 1; turn(); sum(); assert(held == 0) }
}
