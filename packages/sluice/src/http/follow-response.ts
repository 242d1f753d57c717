import { type NodeRequest, type NodeResponse, whenDone } from './when-done.ts'

/** Following is a request whose response is followed to its end. */
export interface Following {
  readonly method: string
  /** Node's request and response, where they are known: they tell the end by themselves. */
  readonly node?: { readonly incoming: NodeRequest; readonly outgoing: NodeResponse }
  /** Else this is aborted when the client goes away; some platforms leave it out. */
  readonly signal: AbortSignal | undefined
  respond(): Promise<Response>
  /**
   * Called when the response has ended; `isWhole` is false if the client went away, or the handler or its
   * stream failed, before that. `response` is 499 where there was none yet, and 500 where the handler threw.
   * May be called again; only the first call counts.
   */
  end(response: Response, isWhole: boolean): void
}

/** followResponse gives the response, with a body that tells when it has ended. */
export async function followResponse(following: Following): Promise<Response> {
  const { method, node, respond } = following
  const signal = node ? undefined : following.signal
  let response: Response | undefined
  const end = (isWhole: boolean) => {
    signal?.removeEventListener('abort', abort)
    following.end(response ?? dropped(), isWhole)
  }
  const abort = () => end(false)
  if (node) whenDone(node.incoming, node.outgoing, end)
  else if (signal?.aborted) abort()
  else signal?.addEventListener('abort', abort)
  try {
    response = await respond()
    if (node) return response
    // A response to HEAD has no body, whatever the handler gives it. Some platforms take no response, or
    // one of their own, for a connection that changes its protocol.
    if (method !== 'HEAD' && response instanceof Response && response.body) {
      return new Response(followed(response.body, end), response)
    }
    end(true)
    return response
  } catch (error) {
    response ??= new Response(null, { status: 500 })
    end(false)
    throw error
  }
}

/** dropped is returned for a client that has gone: 499, as nginx logs it. No client reads it. */
export function dropped(): Response {
  return new Response(null, { status: 499 })
}

function followed(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  end: (isWhole: boolean) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          end(false)
          return controller.error(error)
        }
        end(true)
        controller.close()
      },
      cancel(reason) {
        end(false)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
