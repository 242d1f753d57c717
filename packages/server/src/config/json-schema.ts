import { z } from 'zod'
import { configSchema } from './config-schema.ts'
import type { Path } from './path-text.ts'

interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>
  readonly additionalProperties?: Shape | boolean
  readonly items?: Shape
  readonly anyOf?: readonly Shape[]
}

/** configJsonSchema returns the schema as JSON Schema (2020-12), for editors. */
export function configJsonSchema(): unknown {
  const { $schema, ...rest } = z.toJSONSchema(configSchema, { io: 'input' })
  return { $schema, title: 'Configuration of the Sluice server', ...rest }
}

/** knownNames lists the fields that a table at this path may have. */
export function knownNames(path: Path): readonly string[] {
  let shapes = branches(configJsonSchema() as Shape)
  for (const step of path) shapes = shapes.flatMap((shape) => branches(below(shape, step)))
  return shapes.flatMap((shape) => Object.keys(shape.properties ?? {}))
}

function below(shape: Shape, step: string | number): Shape {
  if (typeof step === 'number') return shape.items ?? {}
  if (shape.properties) return shape.properties[step] ?? {}
  return typeof shape.additionalProperties === 'object' ? shape.additionalProperties : {}
}

function branches(shape: Shape): readonly Shape[] {
  return shape.anyOf ? shape.anyOf.flatMap(branches) : [shape]
}
