/*
 * One decision over two rows that no engine can change together: spend at the first row, then at the
 * second, and give back where a later row refuses or does not answer.
 *
 * A row is a counter, and the ids of calls that may still be given back. A request may be lost, reach
 * its row late, or have its reply lost; a caller may crash between any two steps. Checked:
 *   - a row never holds more than CAPACITY, and never less than what was admitted;
 *   - giving back twice returns a unit once;
 *   - when all is over, what is spent was admitted, unless the caller crashed.
 *
 * Variants that must fail: NO_ID (a give-back asks for no id), NO_DEADLINE (a spend that comes too late
 * still counts), NO_GIVE_BACK (a refusal leaves the first row spent).
 */
#define CAPACITY 1
#define CALLS 2
#define ROWS 2

byte used[ROWS];
byte admitted[ROWS];
/* Whether the unit that a call spent at a row is still there. */
bool spent[CALLS * ROWS];
/* A spend that is still on its way to its row. */
bool late[CALLS * ROWS];
/* The deadline of a call has passed. */
bool expired[CALLS];
bool crashed[CALLS];
byte ended;

#define AT(call, row) ((call) * ROWS + (row))

inline spend(call, row) {
  if
#ifndef NO_DEADLINE
  :: expired[call] -> answer = 0
#endif
  :: used[row] >= CAPACITY -> answer = 0
  :: else -> used[row]++; spent[AT(call, row)] = true; answer = 1
  fi
}

inline take_back(call, row) {
  if
#ifdef NO_ID
  :: used[row] > 0 -> used[row]--; spent[AT(call, row)] = false
#else
  :: spent[AT(call, row)] -> used[row]--; spent[AT(call, row)] = false
#endif
  :: else -> skip
  fi
}

/* A caller spends at the rows in an order of its own: others may do so in the other order. */
proctype caller(byte call; byte first) {
  byte i, row, answer, reached, tries;
  do
  :: i < ROWS ->
    row = (first + i) % ROWS;
    reached = i + 1;
    if
    :: true -> atomic { spend(call, row) }                /* answered */
    :: true -> atomic { spend(call, row); answer = 0 }    /* the reply is lost */
    :: true -> answer = 0                                 /* the request is lost */
    :: true -> atomic { late[AT(call, row)] = true; answer = 0 }
    :: true -> crashed[call] = true; goto over
    fi;
    if
    :: answer == 0 -> break
    :: else -> i++
    fi
  :: else -> break
  od;
  if
  :: i == ROWS ->
    /* The caller is told: from here on the spends stand, whatever happens to it. */
    atomic { admitted[0]++; admitted[1]++ };
    goto over
  :: else -> skip
  fi;
#ifndef NO_GIVE_BACK
  i = 0;
  do
  :: i < reached ->
    row = (first + i) % ROWS;
    if
    :: true -> atomic { take_back(call, row) }; i++       /* answered */
    :: tries < 1 ->                                  /* the reply is lost: once more */
      atomic { take_back(call, row) }; tries++
    :: tries < 1 -> tries++                          /* the request is lost: once more */
    :: true -> crashed[call] = true; goto over
    fi
  :: else -> break
  od;
  /* What was late has come to its row by now, or has come too late. A last give-back follows. */
  atomic {
    expired[call] = true;
    for (i : 0 .. ROWS - 1) { if :: i < reached -> row = (first + i) % ROWS; take_back(call, row) :: else -> skip fi }
  };
#endif
over:
  expired[call] = true;
  ended++
}

/* Delivers what is late, at any time. */
proctype network() {
  byte call, row, answer;
  do
  :: ended == CALLS -> break
  :: atomic { late[AT(0, 0)] -> late[AT(0, 0)] = false; call = 0; row = 0; spend(call, row) }
  :: atomic { late[AT(0, 1)] -> late[AT(0, 1)] = false; call = 0; row = 1; spend(call, row) }
  :: atomic { late[AT(1, 0)] -> late[AT(1, 0)] = false; call = 1; row = 0; spend(call, row) }
  :: atomic { late[AT(1, 1)] -> late[AT(1, 1)] = false; call = 1; row = 1; spend(call, row) }
  od;
  /* And after the end, too. */
  do
  :: atomic { late[AT(0, 0)] -> late[AT(0, 0)] = false; call = 0; row = 0; spend(call, row) }
  :: atomic { late[AT(0, 1)] -> late[AT(0, 1)] = false; call = 0; row = 1; spend(call, row) }
  :: atomic { late[AT(1, 0)] -> late[AT(1, 0)] = false; call = 1; row = 0; spend(call, row) }
  :: atomic { late[AT(1, 1)] -> late[AT(1, 1)] = false; call = 1; row = 1; spend(call, row) }
  :: !late[0] && !late[1] && !late[2] && !late[3] -> break
  od;
  assert(crashed[0] || crashed[1] || (used[0] == admitted[0] && used[1] == admitted[1]))
}

proctype monitor() {
  do
  :: ended == CALLS -> break
  :: assert(used[0] <= CAPACITY && used[1] <= CAPACITY)
  :: assert(used[0] >= admitted[0] && used[1] >= admitted[1])
  od
}

init {
  atomic { run caller(0, 0); run caller(1, 1); run network(); run monitor() }
}
