import { useEffect, useState } from 'preact/hooks'
import type { LiveAbout } from '../../src/dashboard/live-event.ts'
import { Gauges } from './gauges.tsx'
import type { Reading } from './use-key.ts'
import { Verdict } from './verdict.tsx'

const REDRAW_MS = 100

/** KeyNowProps: `isOld` means that later readings failed. */
interface KeyNowProps {
  readonly reading: Reading
  readonly about: LiveAbout
  readonly isOld: boolean
}

/** KeyNow shows the state of a key, and extrapolates between two readings. */
export function KeyNow({ reading, about, isOld }: KeyNowProps) {
  const [nowMs, setNowMs] = useState(performance.now())
  useEffect(() => {
    if (isOld) return
    const timer = setInterval(() => setNowMs(performance.now()), REDRAW_MS)
    return () => clearInterval(timer)
  }, [isOld])
  const sinceMs = isOld ? 0 : Math.max(0, nowMs - reading.atMs)
  return (
    <>
      <Verdict state={reading.state} about={about} sinceMs={sinceMs} />
      <Gauges state={reading.state} about={about} sinceMs={sinceMs} />
    </>
  )
}
