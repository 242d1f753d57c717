import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { fixedWindow } from 'sluice'
import { RateLimit, rateLimit, SkipRateLimit } from 'sluice/nest'
import { afterEach, describe, expect, it } from 'vitest'

const times = (limit: number, name: string) => ({ rules: fixedWindow({ limit, per: '1h', name }) })

const global = times(3, 'global')

/** Creates new modules, since guards count from their creation on. */
function modules() {
  @Controller('plain')
  class Plain {
    @Get() hello() {
      return 'hello'
    }
    @Get('own') @RateLimit(times(1, 'own')) own() {
      return 'hello'
    }
    @Get('two') @RateLimit(times(5, 'five')) @RateLimit(times(2, 'two')) two() {
      return 'hello'
    }
    @Get('skipped') @SkipRateLimit() skipped() {
      return 'hello'
    }
  }

  @Controller('limited')
  @RateLimit(times(2, 'class'))
  class Limited {
    @Get() hello() {
      return 'hello'
    }
    @Get('own') @RateLimit(times(4, 'own of limited')) own() {
      return 'hello'
    }
    @Get('skipped') @SkipRateLimit() skipped() {
      return 'hello'
    }
  }

  @Controller('below')
  @RateLimit(times(1, 'below'))
  class Below extends Limited {}

  @Controller('skipped')
  @SkipRateLimit()
  class Skipped {
    @Get() hello() {
      return 'hello'
    }
    @Get('own') @RateLimit(times(1, 'own of skipped')) own() {
      return 'hello'
    }
  }

  const controllers = [Plain, Limited, Below, Skipped]

  @Module({ controllers, providers: [{ provide: APP_GUARD, useFactory: () => rateLimit(global) }] })
  class App {}

  @Module({ controllers })
  class Unlimited {}

  return { App, Unlimited }
}

let close = async () => {}
afterEach(() => close())

async function served(name: 'App' | 'Unlimited', onFastify: boolean) {
  const module = modules()[name]
  const options = { logger: false } as const
  const app = onFastify
    ? await NestFactory.create(module, new FastifyAdapter() as never, options)
    : await NestFactory.create(module, options)
  await app.listen(0, '127.0.0.1')
  close = () => app.close()
  const { port } = app.getHttpServer().address()
  /** Returns how many of five requests pass, and the rules in the last response. */
  return async (path: string) => {
    let passed = 0
    let told: string | null = null
    for (let i = 0; i < 5; i += 1) {
      const { ok, headers } = await fetch(`http://127.0.0.1:${port}/${path}`)
      if (ok) passed += 1
      told = headers.get('ratelimit-policy')
    }
    return [passed, told?.match(/"[^"]+"/g)?.join() ?? null]
  }
}

describe.each([false, true])('decorators (on Fastify: %s)', (onFastify) => {
  it('replace and skip a global guard', async () => {
    const ask = await served('App', onFastify)
    expect(await ask('plain')).toEqual([3, '"global"'])
    expect(await ask('plain/own')).toEqual([1, '"own"'])
    expect(await ask('plain/skipped')).toEqual([5, null])
    expect(await ask('limited')).toEqual([2, '"class"'])
  })

  it('on a handler replace those of the controller', async () => {
    const ask = await served('App', onFastify)
    expect(await ask('limited/own')).toEqual([4, '"own of limited"'])
    expect(await ask('limited/skipped')).toEqual([5, null])
    expect(await ask('below')).toEqual([1, '"below"'])
    expect(await ask('skipped')).toEqual([5, null])
    expect(await ask('skipped/own')).toEqual([1, '"own of skipped"'])
  })

  it('all count if several are on one handler, also without a global guard', async () => {
    const ask = await served('Unlimited', onFastify)
    expect(await ask('plain')).toEqual([5, null])
    const [passed] = await ask('plain/two')
    expect(passed).toBe(2)
  })
})
