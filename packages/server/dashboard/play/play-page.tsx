import { useEffect, useRef, useState } from 'preact/hooks'
import { Header } from '../header.tsx'
import { algorithmOf, codeOf } from './algorithms.ts'
import { type Choices, choicesFrom, MOST_RATE, queryOf, speeds } from './choices.ts'
import { Clients } from './clients.tsx'
import { Code } from './code.tsx'
import { presetOf, presets } from './presets.ts'
import { RequestButton } from './request-button.tsx'
import { Rows } from './rows.tsx'
import { RuleForm } from './rule-form.tsx'
import { useGame } from './use-game.ts'

/** PlayPage is the playground, which runs the library in the browser. */
export function PlayPage() {
  const [choices, setChoices] = useState(() => choicesFrom(location.search))
  const latest = useRef(choices)
  const { game, isPaused, request, play, restart, togglePause } = useGame(choices)
  const algorithm = algorithmOf(choices.algorithm)
  const row = game.rows.find((each) => each.algorithm === algorithm) ?? game.rows[0]

  useEffect(() => {
    // Browsers limit how often a page may change its address.
    const timer = setTimeout(() => {
      history.replaceState(null, '', `${location.pathname}${queryOf(choices)}`)
    }, 150)
    return () => clearTimeout(timer)
  }, [choices])

  function choose(part: Partial<Choices>): void {
    const next = { ...latest.current, preset: '', ...part }
    latest.current = next
    setChoices(next)
  }

  return (
    <>
      <Header page="playground" />
      <main class="play">
        <div class="intro">
          <h1>Playground</h1>
          <p>
            This page runs the library in your browser. Click, hold or set a rate, and compare how
            six algorithms decide on the same requests.
          </p>
        </div>
        <RuleForm choices={choices} problem={row.problem} choose={choose} />
        <section class="panel traffic" aria-labelledby="traffic-title">
          <h2 id="traffic-title">Traffic</h2>
          <Clients row={row} picked={choices.client} pick={(client) => choose({ client })} />
          <div class="controls">
            <RequestButton request={request}>Request as {choices.client}</RequestButton>
            <label class="field">
              <span>
                Rate: <b>{choices.rate}</b> per second
              </span>
              <input
                type="range"
                name="rate"
                min="0"
                max={MOST_RATE}
                value={choices.rate}
                onInput={({ currentTarget }) => choose({ rate: currentTarget.value })}
              />
            </label>
            <label class="field">
              <span>Time</span>
              <select
                name="speed"
                value={choices.speed}
                onChange={({ currentTarget }) => choose({ speed: currentTarget.value })}
              >
                {speeds.map((speed) => (
                  <option key={speed} value={speed}>
                    {speed}× as fast
                  </option>
                ))}
              </select>
            </label>
            <button type="button" onClick={togglePause}>
              {isPaused ? 'Resume' : 'Pause'}
            </button>
            <button type="button" onClick={restart}>
              Start over
            </button>
          </div>
          <div class="controls presets">
            <span id="presets-title">Play:</span>
            {presets.map((preset) => (
              <button
                key={preset.name}
                type="button"
                data-preset={preset.name}
                title={preset.shows}
                onClick={() => {
                  choose({ preset: preset.name, rate: '0' })
                  play(preset)
                }}
              >
                {preset.title}
              </button>
            ))}
            <span class="small">{presetOf(choices.preset)?.shows}</span>
          </div>
        </section>
        <section class="panel judged" aria-labelledby="rows-title">
          <h2 id="rows-title">Requests of {choices.client}, decided by all six</h2>
          <ul class="small legend">
            <li>
              <span class="allowed">▮</span> allowed
            </li>
            <li>
              <span class="refused">✕</span> refused
            </li>
            <li>
              <span class="allowed">▮▁▁▁</span> delayed until the line ends
            </li>
            <li>┊ a window ends, and another begins</li>
          </ul>
          <Rows game={game} choices={choices} problem={row.problem} />
        </section>
        <Code text={row.problem === '' ? codeOf(algorithm, choices, Number(choices.cost)) : ''} />
      </main>
    </>
  )
}
