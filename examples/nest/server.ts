// 20 requests a minute for everybody, and three a minute for the report.
import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { tokenBucket } from 'sluice'
import { RateLimit, rateLimit } from 'sluice/nest'

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
}

@Module({ controllers: [AppController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
app.useGlobalGuards(rateLimit({ rules: tokenBucket({ limit: 20, per: '1m' }) }))
await app.listen(process.env.PORT ?? 3000)
console.log(`http://localhost:${app.getHttpServer().address().port}`)
