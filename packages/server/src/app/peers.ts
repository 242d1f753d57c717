/** Peers are the processes that serve together under one `sluice serve`, this one included. */
export interface Peers {
  /** Says how this process answers to a topic. */
  answer(topic: string, answer: Answer): void
  /** Asks all of them, telling `about` what; rejects if one of them could not answer. */
  gather<T>(topic: string, about?: unknown): Promise<T[]>
}

type Answer = (about: unknown) => unknown

/** Channel carries messages to the process that started this one. */
export interface Channel {
  send(message: PeerMessage): void
  onMessage(listener: (message: PeerMessage) => void): void
}

/**
 * PeerMessage goes between processes: `gather` asks the primary to ask all, `ask` asks one, which
 * answers with `answer`; `gathered` brings all answers back.
 */
export type PeerMessage =
  | { readonly sluice: 'ready'; readonly gatewayUrl: string; readonly apiUrl: string }
  | {
      readonly sluice: 'gather' | 'ask'
      readonly id: string
      readonly topic: string
      readonly about: unknown
    }
  | { readonly sluice: 'answer'; readonly id: string; readonly told: Told }
  | { readonly sluice: 'gathered'; readonly id: string; readonly all: readonly Told[] }

/** Told is an answer, or why there is none. `problems` are those of a configuration. */
export type Told =
  | { readonly value: unknown }
  | { readonly error: string; readonly problems?: unknown }

/** alone is a process without others. */
export function alone(): Peers {
  const answers = new Map<string, Answer>()
  return {
    answer: (topic, answer) => void answers.set(topic, answer),
    gather: async <T>(topic: string, about?: unknown) => [(await answers.get(topic)?.(about)) as T],
  }
}

/** among is a process that others serve with. */
export function among({ send, onMessage }: Channel): Peers {
  const answers = new Map<string, Answer>()
  const asked = new Map<string, (all: readonly Told[]) => void>()
  let asks = 0

  onMessage(async (message) => {
    if (message.sluice === 'ask') {
      const told = await tell(answers.get(message.topic), message.about)
      send({ sluice: 'answer', id: message.id, told })
    } else if (message.sluice === 'gathered') {
      asked.get(message.id)?.(message.all)
      asked.delete(message.id)
    }
  })

  return {
    answer: (topic, answer) => void answers.set(topic, answer),
    async gather<T>(topic: string, about?: unknown) {
      asks += 1
      const id = `${process.pid}-${asks}`
      const all = await new Promise<readonly Told[]>((resolve) => {
        asked.set(id, resolve)
        send({ sluice: 'gather', id, topic, about })
      })
      return all.map((told) => {
        if ('value' in told) return told.value as T
        const { error, problems } = told
        throw Object.assign(new Error(error), problems === undefined ? {} : { problems })
      })
    },
  }
}

async function tell(answer: Answer | undefined, about: unknown): Promise<Told> {
  try {
    if (!answer) throw new Error('it has not started yet')
    return { value: await answer(about) }
  } catch (error) {
    const { message, problems } = error as Error & { problems?: unknown }
    return { error: message, ...(problems === undefined ? {} : { problems }) }
  }
}
