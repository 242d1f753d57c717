// 20 requests per minute, three per minute for the report, and no limit for the health check.
import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { tokenBucket } from 'sluice'
import { RateLimit, rateLimit, SkipRateLimit } from 'sluice/nest'

@Controller()
class AppController {
  @Get()
  hello() {
    return 'hello'
  }

  @Get('report')
  @RateLimit({ rules: tokenBucket({ limit: 3, per: '1m', name: 'report' }) })
  report() {
    return 'a report'
  }

  @Get('health')
  @SkipRateLimit()
  health() {
    return 'healthy'
  }
}

@Module({ controllers: [AppController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
app.useGlobalGuards(rateLimit({ rules: tokenBucket({ limit: 20, per: '1m' }) }))
await app.listen(process.env.PORT ?? 3000)
console.log(`http://localhost:${app.getHttpServer().address().port}`)
