import {
  type Algorithm,
  type Decision,
  defineAlgorithm,
  memoryStore,
  type Rule,
  type Store,
  type Table,
} from 'sluice'
import { type MadeStore, manualClock } from 'sluice/testing'

/** A store with a bug that a limiter people trust has had. The suite must notice it. */
export interface Twin {
  readonly bug: string
  make(options?: { maxKeys?: number }): MadeStore
}

type Patch = (algorithm: Algorithm) => Partial<Algorithm>

const isBucket = ({ name }: Algorithm) => ['token-bucket', 'gcra', 'leaky-bucket'].includes(name)
const isWindow = ({ name }: Algorithm) => name === 'fixed-window'
const isCalendar = ({ name }: Algorithm) => name === 'calendar-window'

/** withAlgorithm creates a memory store with patched algorithms. */
export function withAlgorithm(bug: string, patch: Patch): Twin {
  const broken = (rule: Rule): Rule => ({
    ...rule,
    // Derive `take` from the patched functions.
    algorithm: defineAlgorithm({
      ...rule.algorithm,
      take: undefined,
      ...patch(rule.algorithm),
    }),
  })
  return twin(
    bug,
    (rules) => rules.map(broken),
    (table) => table,
  )
}

/** withTable creates a memory store with wrapped tables. */
export function withTable(bug: string, wrap: (table: Table, maxKeys: number) => Table): Twin {
  return twin(bug, (rules) => rules, wrap)
}

function twin(
  bug: string,
  change: (rules: readonly Rule[]) => readonly Rule[],
  wrap: (table: Table, maxKeys: number) => Table,
): Twin {
  return {
    bug,
    make({ maxKeys = 1_000_000 } = {}) {
      const clock = manualClock()
      const inner = memoryStore({ clock, maxKeys })
      const tables = new Map<string, Table>()
      const store: Store = {
        kind: 'sync',
        clock,
        open(name, ruleLists) {
          const table = inner.open(name, ruleLists.map(change))
          const use = (rules: readonly Rule[]) => table.use(change(rules))
          if (!tables.has(name)) tables.set(name, wrap({ ...table, use }, maxKeys))
          return tables.get(name)!
        },
      }
      return { store, clock }
    },
  }
}

/** Creates a twin whose table wraps every decision. */
function aroundDecide(
  bug: string,
  around: (table: Table, ...call: Parameters<Table['decide']>) => Decision,
): Twin {
  return withTable(bug, (table) => ({
    ...table,
    decide: (...call) => around(table, ...call),
  }))
}

/** Rewrites the waits that a decision reports. */
const withWaits = (bug: string, wait: (us: number) => number): Twin =>
  aroundDecide(bug, (table, ...call) =>
    withTimes(table.decide(...call), 'retryAfterMs', (ms) => wait(Math.round(ms * 1e3)) / 1e3),
  )

/** Returns a decision with changed times, also those of its rules. */
function withTimes(
  decision: Decision,
  name: 'retryAfterMs' | 'resetAfterMs',
  time: (ms: number) => number,
): Decision {
  const rules = decision.rules.map((rule) => ({ ...rule, [name]: time(rule[name]) }))
  return { ...decision, [name]: time(decision[name]), rules }
}

/** soundTwins are built the same way without a bug. The suite must accept them. */
export const soundTwins: readonly Twin[] = [
  withAlgorithm('no algorithm is patched', () => ({})),
  aroundDecide('no table is wrapped', (table, ...call) => table.decide(...call)),
]

/** twins have known bugs of other limiters, as far as a store or an algorithm can have them. */
export const twins: readonly Twin[] = [
  withAlgorithm('an idle key is clamped to now − tolerance and gets up to twice its burst', (a) =>
    isBucket(a)
      ? {
          waitUs: (cells, at, rule, cost, nowUs) =>
            Math.max(
              0,
              Math.max(cells[at], nowUs - rule.fullUs) + cost * rule.gapUs - rule.fullUs - nowUs,
            ),
          spend(cells, at, rule, cost, nowUs) {
            cells[at] = Math.max(cells[at], nowUs - rule.fullUs) + cost * rule.gapUs
          },
        }
      : {},
  ),

  withTable('a TTL floored to whole seconds lets states vanish early', (table) => {
    const endsUs = new Map<string, number>()
    return {
      ...table,
      decide(set, key, cost, spend, nowUs = table.nowUs()) {
        if ((endsUs.get(key) ?? 0) <= nowUs) table.reset(key, nowUs)
        const decision = table.decide(set, key, cost, spend, nowUs)
        endsUs.set(key, nowUs + Math.floor(decision.resetAfterMs / 1e3) * 1e6)
        return decision
      },
    }
  }),

  aroundDecide(
    'usage is read first and added later, so that concurrent requests all pass',
    (table, set, key, cost, spend, nowUs = table.nowUs()) => {
      const decision = table.decide(set, key, cost, false, nowUs)
      if (spend && decision.allowed) queueMicrotask(() => table.charge(set, key, cost, nowUs))
      return decision
    },
  ),

  withTable('eviction of the oldest key forgives it', (table, maxKeys) => {
    const known = new Set<string>()
    return {
      ...table,
      decide(set, key, cost, spend, nowUs = table.nowUs()) {
        known.delete(key)
        known.add(key)
        const [oldest] = known
        if (known.size > maxKeys / 2) {
          known.delete(oldest)
          table.reset(oldest, nowUs)
        }
        return table.decide(set, key, cost, spend, nowUs)
      },
    }
  }),

  withAlgorithm('GCRA in double milliseconds cuts a burst short or lets one more through', (a) =>
    isBucket(a)
      ? {
          waitUs(cells, at, rule, cost, nowUs) {
            const gapMs = rule.perUs / 1e3 / rule.limit
            const aheadMs = Math.max(0, cells[at] / 1e3 - nowUs / 1e3)
            const waitMs = aheadMs + cost * gapMs - rule.capacity * gapMs
            return waitMs > 0 ? Math.ceil(waitMs * 1e3) : 0
          },
        }
      : {},
  ),

  withAlgorithm('a window beyond 24.8 days overflows a timer and ends after a millisecond', (a) =>
    isWindow(a)
      ? {
          waitUs: (cells, at, rule, cost, nowUs) =>
            rule.perUs > 2 ** 31 * 1e3 && nowUs > cells[at] + 1e3
              ? 0
              : a.waitUs(cells, at, rule, cost, nowUs),
        }
      : {},
  ),

  withAlgorithm('the remainder of a refill is dropped: 3 per 10 becomes 1 per 3', (a) =>
    isBucket(a) ? { cells: () => 2, waitUs: floored(a.waitUs), spend: floored(a.spend) } : {},
  ),

  withAlgorithm('the fractions of a large rate are multiplied in doubles', (a) =>
    isBucket(a)
      ? {
          waitUs(cells, at, rule, cost, nowUs) {
            const aheadUs = Math.max(0, cells[at] - nowUs) + cost * rule.gapUs - rule.fullUs
            if (rule.gapParts === 1) return Math.max(0, aheadUs)
            const parts = (cells[at] >= nowUs ? cells[at + 1] : 0) + cost * rule.gapRest
            return Math.max(0, aheadUs + Math.ceil((parts - rule.fullRest) / rule.gapParts))
          },
          spend(cells, at, rule, cost, nowUs) {
            // A spend of 0 does the rest, such as the cap of debt.
            const parts = (cells[at] >= nowUs ? cells[at + 1] : 0) + cost * rule.gapRest
            cells[at] = Math.max(cells[at], nowUs) + cost * rule.gapUs
            if (rule.gapParts !== 1) {
              cells[at] += Math.floor(parts / rule.gapParts)
              cells[at + 1] = parts % rule.gapParts
            }
            a.spend(cells, at, rule, 0, nowUs)
          },
        }
      : {},
  ),

  withAlgorithm('a large window is weighed in doubles', (a) =>
    a.name === 'sliding-window-counter'
      ? {
          waitUs(cells, at, rule, cost, nowUs) {
            const { perUs } = rule
            const startUs = Math.max(cells[at], nowUs - (nowUs % perUs))
            const isSame = cells[at] === startUs
            const current = isSame ? cells[at + 1] : 0
            const isNext = cells[at] === startUs - perUs
            const previous = isSame ? cells[at + 2] : isNext ? cells[at + 1] : 0
            const leftUs = perUs - Math.max(0, nowUs - startUs)
            const used = current + Math.ceil((previous * leftUs) / perUs)
            if (used + cost <= rule.limit) return 0
            return Math.max(1, a.waitUs(cells, at, rule, cost, nowUs))
          },
        }
      : {},
  ),

  withWaits('a retry is announced four times too late', (us) => us * 4),
  withWaits('a retry is rounded down to whole milliseconds, and comes too early', (us) =>
    us > 0 ? Math.max(1, Math.floor(us / 1e3) * 1e3) : 0,
  ),

  aroundDecide(
    'a refused request is charged',
    (table, set, key, cost, spend, nowUs = table.nowUs()) => {
      const decision = table.decide(set, key, cost, spend, nowUs)
      const isRefused = decision.rules.some(({ retryAfterMs }) => retryAfterMs > 0)
      if (spend && isRefused) table.charge(set, key, cost, nowUs)
      return decision
    },
  ),

  withTable('of several rules the roomy ones are charged although another refuses', (table) => ({
    ...table,
    decide(set, key, cost, spend, nowUs = table.nowUs()) {
      const decision = table.decide(set, key, cost, spend, nowUs)
      const roomy = set.rules.filter((_, i) => decision.rules[i].retryAfterMs === 0)
      if (spend && cost !== 0 && roomy.length > 0 && roomy.length < set.rules.length) {
        table.charge(table.use(roomy), key, cost, nowUs)
      }
      return decision
    },
  })),

  withTable('a deny cache ignores the cost', (table) => {
    const denied = new Map<string, number>()
    return {
      ...table,
      decide(set, key, cost, spend, nowUs = table.nowUs()) {
        const deniedUs = Math.max(0, (denied.get(key) ?? 0) - nowUs)
        const decision = table.decide(set, key, cost, spend && deniedUs === 0, nowUs)
        if (!decision.allowed) denied.set(key, nowUs + Math.round(decision.retryAfterMs * 1e3))
        else if (deniedUs > 0) return { ...decision, allowed: false, retryAfterMs: deniedUs / 1e3 }
        return decision
      },
    }
  }),

  aroundDecide('the reset is figured from a second clock', (table, ...call) =>
    withTimes(table.decide(...call), 'resetAfterMs', (ms) => (ms > 0 ? ms + 0.002 : 0)),
  ),

  withAlgorithm('a window below a second is floored to 0 seconds and never ends', (a) =>
    isWindow(a)
      ? {
          waitUs: (cells, at, rule, cost, nowUs) =>
            rule.perUs < 1e6 && cells[at + 1] + cost > rule.limit
              ? rule.perUs
              : a.waitUs(cells, at, rule, cost, nowUs),
        }
      : {},
  ),

  withTable('keys are cut to 64 characters', (table) => ({
    ...table,
    decide: (set, key, ...call) => table.decide(set, key.slice(0, 64), ...call),
  })),

  withTable('keys are normalised, so that different ones share a state', (table) => ({
    ...table,
    decide: (set, key, ...call) =>
      table.decide(set, Buffer.from(key).toString().normalize(), ...call),
  })),

  withTable('reset takes the key for a pattern', (table) => ({
    ...table,
    reset: (key, nowUs) => (key === '*' ? table.clear() : table.reset(key, nowUs)),
  })),

  withTable('a refund makes more than a full bucket', (table) => ({
    ...table,
    refund(set, key, cost, nowUs, spentUs) {
      table.reset(key, nowUs)
      table.refund(set, key, cost, nowUs, spentUs)
    },
  })),

  withTable('blocks are forgotten', (table) => ({ ...table, block() {} })),

  withTable('peek spends', (table) => ({
    ...table,
    decide: (set, key, cost, _spend, nowUs) => table.decide(set, key, cost, true, nowUs),
  })),

  withAlgorithm('a month is announced to have 30 days', (a) =>
    isCalendar(a)
      ? {
          waitUs(cells, at, rule, cost, nowUs) {
            const waitUs = a.waitUs(cells, at, rule, cost, nowUs)
            if (waitUs === 0 || rule.params.per !== 'month') return waitUs
            const lastDay = new Date(Math.floor((nowUs + waitUs) / 1e3) - 1)
            return Math.max(1, waitUs + (30 - lastDay.getUTCDate()) * 86_400e6)
          },
        }
      : {},
  ),

  withAlgorithm('a month ends in the time zone of the server', (a) =>
    isCalendar(a)
      ? {
          spend(cells, at, rule, cost, nowUs) {
            a.spend(cells, at, rule, cost, nowUs)
            if (rule.params.per === 'month') cells[at] -= 3_600e6
          },
        }
      : {},
  ),

  withAlgorithm('a period ends at an edge of UTC, whatever its zone', (a) =>
    isCalendar(a) ? { spend: (...call) => spendAhead(a, 0, ...call) } : {},
  ),

  withAlgorithm('a period ends by the offset that its zone has in January', (a) =>
    isCalendar(a)
      ? {
          spend(cells, at, rule, cost, nowUs) {
            const aheadUs = januaryUs(String(rule.params.zone), nowUs)
            spendAhead(a, aheadUs, cells, at, rule, cost, nowUs)
          },
        }
      : {},
  ),

  withAlgorithm('a change of limits starts from a full bucket', () => ({
    carry(cells, at) {
      cells[at] = 0
    },
  })),
]

/** Spends by a calendar at a fixed offset from UTC. */
function spendAhead(
  { spend }: Algorithm,
  aheadUs: number,
  ...[cells, at, rule, cost, nowUs]: Parameters<Algorithm['spend']>
): void {
  const utc = { ...rule, params: { ...rule.params, zone: 'UTC' } }
  cells[at] += aheadUs
  spend(cells, at, utc, cost, nowUs + aheadUs)
  cells[at] -= aheadUs
}

/** Returns how far a zone is ahead of UTC at the start of the year. */
function januaryUs(timeZone: string, nowUs: number): number {
  const ms = Date.UTC(new Date(Math.floor(nowUs / 1e3)).getUTCFullYear(), 0)
  return (Date.parse(`${new Date(ms).toLocaleString('sv-SE', { timeZone })}Z`) - ms) * 1e3
}

type Figure<T> = (cells: Float64Array, at: number, rule: Rule, cost: number, nowUs: number) => T

function floored<T>(figure: Figure<T>): Figure<T> {
  return (cells, at, rule, cost, nowUs) =>
    figure(
      cells,
      at,
      { ...rule, gapRest: 0, fullRest: 0, fullUs: rule.capacity * rule.gapUs },
      cost,
      nowUs,
    )
}
