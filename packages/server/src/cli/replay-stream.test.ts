import { SluiceError } from 'sluice'
import { describe, expect, it } from 'vitest'
import { replayStream } from './replay-stream.ts'

interface Outcome {
  output: string
  error?: string
}

/** Runs a replay over the text cut at the given positions; the text stands for bytes (latin1). */
async function play(text: string, cuts: readonly number[] = []): Promise<Outcome> {
  const bytes = Buffer.from(text, 'latin1')
  const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length]
  async function* chunks() {
    for (let i = 1; i < edges.length; i++) yield bytes.subarray(edges[i - 1], edges[i])
  }
  let output = ''
  const write = async (part: string) => {
    output += part
  }
  try {
    await replayStream(chunks(), write)
    return { output }
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== 'SLUICE_REPLAY') throw error
    return { output, error: error.message }
  }
}

/** The letters a and d for the answers, to keep traces short. */
async function letters(text: string): Promise<string> {
  const { output, error } = await play(text)
  expect(error).toBeUndefined()
  return output.replace(/(allow|deny)\n/g, (_, answer) => answer[0])
}

it('gives the same answers wherever the input is cut in two, and byte by byte', async () => {
  const text = '3\r\n 10\n\n4\nrequest alice 0\r\n\nset x\nrequest \xe9\t9007199254740993'
  const whole = await play(text)
  expect(whole).toEqual({ output: 'allow\nallow\n' })
  const positions = Array.from({ length: text.length + 1 }, (_, i) => i)
  const outcomes = await Promise.all(positions.map((cut) => play(text, [cut])))
  expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome))).size).toBe(1)
  expect(outcomes[0]).toEqual(whole)
  expect(await play(text, positions)).toEqual(whole)
})

describe('the arithmetic', () => {
  const requests = (times: readonly (number | string)[]) =>
    times.map((time) => `request a ${time}\n`).join('')

  it('lets a full bucket through, and again one window later', async () => {
    const eight = requests([0, 0, 0, 0, 10, 10, 10, 10])
    expect(await letters(`3\n10\n8\n${eight}`)).toBe('aaadaaad')
  })

  it('adds a token at the tick that earns it and not the tick before', async () => {
    expect(await letters(`2 10 5\n${requests([0, 0, 4, 5, 5])}`)).toBe('aadad')
  })

  it('never refills with a window of 0 and always denies with a capacity of 0', async () => {
    expect(await letters(`1 0 3\n${requests([0, 1, '9'.repeat(40)])}`)).toBe('add')
    expect(await letters(`0 10 2\n${requests([0, 100])}`)).toBe('dd')
    expect(await letters(`0 0 1\n${requests([0])}`)).toBe('d')
  })

  it('refills nothing when time runs backwards, and keeps the later instant', async () => {
    expect(await letters(`1 10 5\n${requests([20, 5, 15, 29, 30])}`)).toBe('addda')
  })

  it('reads signs and leading zeros in timestamps', async () => {
    expect(await letters(`1 10 4\n${requests(['-5', '+004', '+5', '-0'])}`)).toBe('adad')
  })

  it('stays exact far beyond 2^53', async () => {
    const base = 2n ** 80n
    const times = [base, base + 9n, base + 10n].map(String)
    expect(await letters(`1 10 3\n${requests(times)}`)).toBe('ada')
    const window = 10n ** 30n
    const later = [0n, window - 1n, window].map(String)
    expect(await letters(`1 ${window} 3\n${requests(later)}`)).toBe('ada')
  })
})

describe('clients', () => {
  it('keeps hostile names apart from each other and from anything built in', async () => {
    const names = ['__proto__', 'constructor', 'toString', '\0', '\0\0', '\v', 'request', '\r']
    const lines = [...names, ...names].map((name) => `request ${name} 0\n`)
    const answers = await letters(`1 10 ${lines.length}\n${lines.join('')}`)
    expect(answers).toBe('a'.repeat(names.length) + 'd'.repeat(names.length))
  })

  it('tells clients apart by bytes, valid UTF-8 or not', async () => {
    const lines = ['\xff', '\xfe', '\xef\xbf\xbd', '\xff'].map((name) => `request ${name} 0\n`)
    expect(await letters(`1 10 4\n${lines.join('')}`)).toBe('aaad')
  })
})

describe('the count', () => {
  it('counts blank lines and other commands without answering them', async () => {
    expect(await letters('3 10 4\n\nstatus alice\n \t\r\nrequest a 0\n')).toBe('a')
  })

  it('stops reading at the count, whatever follows', async () => {
    let read = 0
    async function* endless() {
      yield Buffer.from('1 10 2\nrequest a 0\nrequest a 0\nrequest broken')
      for (;;) {
        read += 1
        yield Buffer.from('request a 0\n')
      }
    }
    const written: string[] = []
    await replayStream(endless(), async (text) => void written.push(text))
    expect(written.join('')).toBe('allow\ndeny\n')
    expect(read).toBe(0)
  })

  it('prints nothing for a count of 0, even without a newline', async () => {
    expect(await play('3 10 0')).toEqual({ output: '' })
    expect(await play('3\n10\n0\nrequest\n')).toEqual({ output: '' })
  })

  it('reports too few lines after the answers there are', async () => {
    const ended = (lines: string) => `line 2: the input ends after 1 of ${lines} lines.`
    const { output, error } = await play('3 10 2\nrequest a 0\n')
    expect(output).toBe('allow\n')
    expect(error).toContain(ended('2'))
    expect((await play(`3 10 ${2n ** 70n}\nrequest a 0`)).error).toContain(ended(`${2n ** 70n}`))
  })
})

describe('a malformed header', () => {
  it.each([
    ['', 'line 1: the input ends before the capacity.'],
    ['\n\n', 'line 2: the input ends before the capacity.'],
    ['3', 'line 1: the input ends before the window.'],
    ['3\n10\n', 'line 2: the input ends before the count.'],
    ['x 10 1\n', 'line 1: the capacity must be a whole number from 0 up, got "x".'],
    ['3\n\n-10\n1\n', 'line 3: the window must be a whole number from 0 up, got "-10".'],
    ['3 10\n1.5\n', 'line 2: the count must be a whole number from 0 up, got "1.5".'],
    ['1e3 10 1\n', 'line 1: the capacity must be a whole number from 0 up, got "1e3".'],
    ['0x3 10 1\n', 'line 1: the capacity must be a whole number from 0 up, got "0x3".'],
    ['3 10 1 request a 0\n', 'line 1: nothing may follow the count on its line, got "request".'],
    ['3\n10\n1 1\n', 'line 3: nothing may follow the count on its line, got "1".'],
  ])('%j is refused: %s', async (text, message) => {
    const { output, error } = await play(text)
    expect(output).toBe('')
    expect(error).toContain(message)
  })
})

describe('a malformed request', () => {
  it.each([
    ['request', 'line 5: a request takes two arguments, a client and a timestamp, got none.'],
    ['request  7', 'line 5: a request takes two arguments, a client and a timestamp, got one.'],
    ['request a 7 x', 'line 5: a request takes two arguments, a client and a timestamp, got more.'],
    ['request a 1.5', 'line 5: the timestamp must be an integer, got "1.5".'],
    ['request a 1n', 'line 5: the timestamp must be an integer, got "1n".'],
    ['request a -', 'line 5: the timestamp must be an integer, got "-".'],
    ['request a 0x1', 'line 5: the timestamp must be an integer, got "0x1".'],
    ['request a \xc3\xa9\x1b', 'line 5: the timestamp must be an integer, got "é\ufffd".'],
  ])('%j is refused after the answers before it', async (line, message) => {
    const { output, error } = await play(`3\n10\n3\nrequest a 0\n${line}\nrequest a 0\n`)
    expect(output).toBe('allow\n')
    expect(error).toContain(message)
    expect(error).toContain('Write it like: request alice 10')
  })

  it('shows only the beginning of a long word', async () => {
    const { error } = await play(`3 10 1\nrequest a ${'x'.repeat(5000)}\n`)
    expect(error?.length).toBeLessThan(200)
  })
})

describe('writing', () => {
  it('answers a chunk before it asks for the next, and waits for each write', async () => {
    const events: string[] = []
    async function* chunks() {
      for (const chunk of ['2 10 3\nrequest a 0\n', 'skip\nreq', 'uest a 0\n']) {
        events.push('read')
        yield Buffer.from(chunk)
      }
    }
    await replayStream(chunks(), async (text) => {
      events.push(text)
      await Promise.resolve()
      events.push('written')
    })
    expect(events).toEqual(['read', 'allow\n', 'written', 'read', 'read', 'allow\n', 'written'])
  })

  it('ends with the error of a failed write and closes the input', async () => {
    let closed = false
    async function* chunks() {
      try {
        yield Buffer.from('2 10 3\nrequest a 0\n')
        yield Buffer.from('request a 0\n')
      } finally {
        closed = true
      }
    }
    const broken = async () => {
      throw new Error('no reader')
    }
    await expect(replayStream(chunks(), broken)).rejects.toThrow('no reader')
    expect(closed).toBe(true)
  })
})
