/** Peers are the processes of one `sluice serve`, this one included. */
export interface Peers {
  /** Sets how this process answers a topic. */
  answer(topic: string, answer: Answer): void
  /** Asks all processes about a topic, with `about` as the argument; rejects if one fails. */
  gather<T>(topic: string, about?: unknown): Promise<T[]>
}

type Answer = (about: unknown) => unknown

/** Channel carries messages to and from the primary process. */
export interface Channel {
  send(message: PeerMessage): void
  onMessage(listener: (message: PeerMessage) => void): void
}

/**
 * PeerMessage is a message between processes: with `gather` a worker has the primary ask all of
 * them, `ask` asks one, which replies with `answer`; `gathered` returns all answers.
 */
export type PeerMessage =
  | { readonly sluice: 'ready'; readonly gatewayUrl: string; readonly apiUrl: string }
  | {
      readonly sluice: 'gather' | 'ask'
      readonly id: string
      readonly topic: string
      readonly about: unknown
    }
  | { readonly sluice: 'answer'; readonly id: string; readonly reply: Reply }
  | { readonly sluice: 'gathered'; readonly id: string; readonly all: readonly Reply[] }

/** Reply is an answer or an error. `problems` are those of a configuration. */
export type Reply =
  | { readonly value: unknown }
  | { readonly error: string; readonly problems?: unknown }

/** alone is for a process without others. */
export function alone(): Peers {
  const answers = new Map<string, Answer>()
  return {
    answer: (topic, answer) => void answers.set(topic, answer),
    gather: async <T>(topic: string, about?: unknown) => [(await answers.get(topic)?.(about)) as T],
  }
}

/** among is for one of several processes. */
export function among({ send, onMessage }: Channel): Peers {
  const answers = new Map<string, Answer>()
  const asked = new Map<string, (all: readonly Reply[]) => void>()
  let asks = 0

  onMessage(async (message) => {
    if (message.sluice === 'ask') {
      const reply = await replyTo(answers.get(message.topic), message.about)
      send({ sluice: 'answer', id: message.id, reply })
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
      const all = await new Promise<readonly Reply[]>((resolve) => {
        asked.set(id, resolve)
        send({ sluice: 'gather', id, topic, about })
      })
      return all.map((reply) => {
        if ('value' in reply) return reply.value as T
        const { error, problems } = reply
        throw Object.assign(new Error(error), problems === undefined ? {} : { problems })
      })
    },
  }
}

async function replyTo(answer: Answer | undefined, about: unknown): Promise<Reply> {
  try {
    if (!answer) throw new Error('the process has not started yet')
    return { value: await answer(about) }
  } catch (error) {
    const { message, problems } = error as Error & { problems?: unknown }
    return { error: message, ...(problems === undefined ? {} : { problems }) }
  }
}
