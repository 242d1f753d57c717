import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

const FIRST_REPEAT_MS = 350
const REPEAT_MS = 100

/** RequestButton sends a request when it is pressed, and ten per second while it is held. */
export function RequestButton(props: { request(): void; children: ComponentChildren }) {
  const { request, children } = props
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  // A pointer press has already sent its request when its click arrives.
  const isCounted = useRef(false)

  const release = () => clearTimeout(timer.current)
  useEffect(() => release, [])
  const repeat = () => {
    request()
    timer.current = setTimeout(repeat, REPEAT_MS)
  }
  return (
    <button
      type="button"
      class="primary request"
      onPointerDown={({ button }) => {
        if (button !== 0) return
        isCounted.current = true
        request()
        release()
        timer.current = setTimeout(repeat, FIRST_REPEAT_MS)
      }}
      onPointerUp={release}
      onPointerLeave={release}
      onPointerCancel={release}
      onContextMenu={(event) => event.preventDefault()}
      onClick={() => {
        if (!isCounted.current) request()
        isCounted.current = false
      }}
    >
      {children}
    </button>
  )
}
