import { useEffect, useState } from 'preact/hooks'
import type { LiveAbout } from '../../src/dashboard/live-event.ts'
import { Gauges } from './gauges.tsx'
import type { Reading } from './use-key.ts'
import { Verdict } from './verdict.tsx'

const REDRAW_MS = 100

/** KeyNow shows how a key stands, and moves on between two readings. */
export function KeyNow({ reading, about }: { reading: Reading; about: LiveAbout }) {
  const [nowMs, setNowMs] = useState(performance.now())
  useEffect(() => {
    const timer = setInterval(() => setNowMs(performance.now()), REDRAW_MS)
    return () => clearInterval(timer)
  }, [])
  const sinceMs = Math.max(0, nowMs - reading.atMs)
  return (
    <>
      <Verdict state={reading.state} sinceMs={sinceMs} />
      <Gauges state={reading.state} about={about} sinceMs={sinceMs} />
    </>
  )
}
