import type { Run } from './chaos.ts'
import type { Made, NodeRecord } from './fleet.ts'

/** How much longer than its timeout and the lag of the event loop a call may take. */
const SLACK_MS = 30

/** How soon after a fault Redis must decide again. */
const RESUME_MS = 200

const LEAST_CALLS_PER_SECOND = 200

/** The longest median of calls while the breaker is open. */
const DEGRADED_MEDIAN_MS = 1

/** complaintsAbout lists everything wrong with a run; nothing for a correct limiter. */
export function complaintsAbout(run: Run): string[] {
  return [
    aboutThrowing,
    aboutLoad,
    aboutTime,
    aboutPolicy,
    aboutFault,
    aboutResuming,
    aboutAdmissions,
    aboutDegradation,
  ].flatMap((check) => check(run))
}

function aboutThrowing(run: Run): string[] {
  const thrown = callsOf(run).filter(({ error }) => error !== undefined)
  return thrown.length > 0 ? [`${thrown.length} calls threw: ${thrown[0].error}`] : []
}

function aboutLoad(run: Run): string[] {
  const perSecond = (callsOf(run).length * 1_000) / (run.stopMs - run.startMs)
  if (perSecond >= LEAST_CALLS_PER_SECOND) return []
  return [`the load was only ${perSecond} calls a second`]
}

function aboutTime(run: Run): string[] {
  const longestMs = Math.max(...callsOf(run).map(tookMs))
  const mostMs = run.timeoutMs + SLACK_MS + run.lagMs
  return longestMs > mostMs ? [`a call took ${longestMs} ms, and ${mostMs} ms is the most`] : []
}

function aboutPolicy(run: Run): string[] {
  const { policy } = run
  const others = answersOf(run).filter(({ source }) => source !== 'store')
  const strange = others.filter(({ source }) => source !== policy)
  const sources = [...new Set(strange.map(({ source }) => source))]
  const isWrong = ({ allowed }: Made) => policy !== 'local' && allowed !== (policy === 'open')
  const wrong = others.filter(isWrong)
  return [
    ...(strange.length > 0 ? [`the policy is ${policy}, and ${sources} decided`] : []),
    ...(wrong.length > 0 ? [`${wrong.length} decisions are not ${policy}`] : []),
  ]
}

/** Checks that the fault had an effect: otherwise the run proves nothing. */
function aboutFault(run: Run): string[] {
  const { fault, startMs, beganMs, endedMs, stopMs, nodes } = run
  const before = share(run, 'store', startMs, beganMs)
  const during = 1 - share(run, 'store', beganMs, endedMs)
  const readyMs = Math.max(endedMs, ...nodes.flatMap((node) => node.readyMs))
  const after = share(run, 'store', readyMs + RESUME_MS + run.lagMs, stopMs)
  const isHeard = run.errors.some((error) => fault.shows.test(error))
  return [
    ...(before > 0.5 || fault.atBoot ? [] : ['Redis did not decide before the fault']),
    ...(during > 0.5 ? [] : [`the fault never showed: ${during} of the decisions were others`]),
    ...(after > 0.5 ? [] : ['Redis did not decide after the fault']),
    ...(isHeard ? [] : [`the fault never showed: it was not heard of but ${run.errors}`]),
  ]
}

/** Returns the share of a source among the decisions requested in an interval. */
function share(run: Run, source: string, fromMs: number, toMs: number): number {
  const calls = callsOf(run).filter(({ startMs }) => startMs >= fromMs && startMs < toMs)
  return calls.filter((call) => call.source === source).length / calls.length
}

function aboutResuming(run: Run): string[] {
  const mostMs = RESUME_MS + run.lagMs
  return run.nodes.flatMap((node) => {
    const ms = resumedMs(run, node)
    if (ms <= mostMs) return []
    return [`${node.name}: Redis decided again after ${ms} ms, and ${mostMs} ms is the most`]
  })
}

/** Returns how long after the fault, or after its last connect, Redis decided for a node again. */
function resumedMs({ endedMs }: Run, { readyMs, calls }: NodeRecord): number {
  const fromMs = Math.max(endedMs, ...readyMs)
  const answers = calls.filter(({ source, endMs }) => source === 'store' && endMs >= fromMs)
  return Math.min(...answers.map(({ endMs }) => endMs)) - fromMs
}

/** Checks that the rule bounds the admissions of Redis, and those of all local shares. */
function aboutAdmissions(run: Run): string[] {
  const times = run.fault.losesData ? 2 : 1
  return [
    ...aboutBound(run, 'store', times),
    ...(run.policy === 'local' ? aboutBound(run, 'local', 1) : []),
  ]
}

/** Checks admissions against a bucket that is full at the start and after each loss of data. */
function aboutBound(run: Run, source: string, times: number): string[] {
  const calls = answersOf(run).filter((call) => call.source === source)
  const admitted = calls.filter(({ allowed }) => allowed).length
  const fromMs = Math.min(...calls.map(({ startMs }) => startMs))
  const toMs = Math.max(...calls.map(({ endMs }) => endMs))
  const least = times * run.capacity
  const most = least + Math.ceil(((toMs - fromMs) * run.perSecond) / 1_000)
  if (admitted >= least && admitted <= most) return []
  return [`${source} admitted ${admitted}, and ${least} to ${most} would be right`]
}

/** Checks that a node with an open breaker does not wait for Redis, and calls onDegraded. */
function aboutDegradation(run: Run): string[] {
  return run.nodes.flatMap((node) => {
    const medianMs = median(whileDegraded(node).map(tookMs))
    const complaints = [
      ...(node.degradedMs.length > 0 ? [] : ['onDegraded was not called']),
      ...(node.recoveredMs.length > 0 ? [] : ['onRecovered was not called']),
      ...(medianMs < DEGRADED_MEDIAN_MS ? [] : [`the median while degraded was ${medianMs} ms`]),
    ]
    return complaints.map((complaint) => `${node.name}: ${complaint}`)
  })
}

/** Returns the calls made while the breaker was open. */
function whileDegraded({ calls, degradedMs, recoveredMs }: NodeRecord): Made[] {
  return calls.filter(({ startMs }) => {
    const fromMs = degradedMs.findLast((ms) => ms <= startMs)
    return fromMs !== undefined && !recoveredMs.some((ms) => ms >= fromMs && ms <= startMs)
  })
}

const tookMs = ({ startMs, endMs }: Made) => endMs - startMs

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]
}

const callsOf = ({ nodes }: Run) => nodes.flatMap(({ calls }) => calls)

const answersOf = (run: Run) => callsOf(run).filter(({ source }) => source !== undefined)
