import { useEffect, useRef, useState } from 'preact/hooks'
import { Header } from '../header.tsx'
import { type ApiProblem, token } from './api.ts'
import { addressOf } from './key-link.tsx'
import { KeyPanel } from './key-panel.tsx'
import { KeySearch } from './key-search.tsx'
import { type LiveState, startedState, withKey, withSecond } from './live-state.ts'
import { openLive } from './live-stream.ts'
import { type Connection, Status } from './status.tsx'
import { StorePanel } from './store-panel.tsx'
import { TokenForm } from './token-form.tsx'
import { TopKeys } from './top-keys.tsx'
import { Refusals, Traffic } from './traffic.tsx'
import { clockOf } from './words.ts'

/** WatchPage is the dashboard. The open key is in its address. */
export function WatchPage() {
  const [key, setKey] = useState(() => new URLSearchParams(location.search).get('key') ?? '')
  const [state, setState] = useState<LiveState>()
  const [connection, setConnection] = useState<Connection>('connecting')
  const [problem, setProblem] = useState<ApiProblem>()
  const [attempt, setAttempt] = useState(0)
  const heardMs = useRef(Date.now())

  useEffect(() => {
    history.replaceState(null, '', addressOf(key))
    return openLive(key, {
      start(start) {
        heardMs.current = Date.now()
        setProblem(undefined)
        setConnection('live')
        setState((before) => startedState(start, before))
      },
      about: (change) =>
        setState((before) => before && { ...before, start: { ...before.start, ...change } }),
      second(news) {
        heardMs.current = Date.now()
        setState((before) => before && withSecond(before, news))
      },
      key: (news) => setState((before) => before && withKey(before, news)),
      refused(told) {
        setState(undefined)
        setProblem(told)
      },
      lost: () => setConnection('reconnecting'),
    })
  }, [key, attempt])

  function look(next: string): void {
    // A lone surrogate cannot be encoded in a URL.
    if (!next.isWellFormed()) return
    setState((before) => before && { ...before, decisions: [], leftOut: 0 })
    setKey(next)
    document.getElementById('key-title')?.scrollIntoView({ block: 'nearest' })
  }

  const isLost = connection === 'reconnecting'
  return (
    <>
      <Header page="dashboard" />
      <main class={isLost ? 'watch lost' : 'watch'}>
        {problem?.status === 401 && (
          <TokenForm
            problem={token.get() === '' ? '' : problem.message}
            given={() => setAttempt(attempt + 1)}
          />
        )}
        {problem && problem.status !== 401 && (
          <section class="panel ask">
            <h1>No access</h1>
            <p role="alert">{problem.message}</p>
          </section>
        )}
        {!problem && !state && (
          <p role="status" class="small">
            {connection}…
          </p>
        )}
        {state && (
          <>
            <h1 class="unseen">Dashboard</h1>
            <p class="no-connection warn" role="status" data-role="no-connection">
              {isLost && `Disconnected since ${clockOf(heardMs.current)}; the data is from then.`}
            </p>
            <Status state={state} connection={connection} />
            <section class="panel looked" aria-labelledby="key-title">
              <h2 id="key-title">Inspect a key</h2>
              <KeySearch state={state} look={look} />
              {key !== '' && (
                <KeyPanel id={key} state={state} isLost={isLost} close={() => look('')} />
              )}
            </section>
            <Traffic state={state} />
            <TopKeys
              id="limited-title"
              title="Top clients by refusals"
              none="No refusals."
              keys={state.top?.limited}
              ofRefusals
              look={look}
            />
            <TopKeys
              id="talking-title"
              title="Top clients by requests"
              none="No requests."
              keys={state.top?.talking}
              look={look}
            />
            <Refusals state={state} />
            <StorePanel state={state} />
            <footer class="small">
              Sluice {state.start.version} · <a href="/v1/openapi.json">API</a>
              {token.get() !== '' && (
                <>
                  {' · '}
                  <button
                    type="button"
                    class="link"
                    onClick={() => {
                      token.forget()
                      location.reload()
                    }}
                  >
                    Forget the token
                  </button>
                </>
              )}
            </footer>
          </>
        )}
      </main>
    </>
  )
}
