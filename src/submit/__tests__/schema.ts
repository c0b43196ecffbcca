/** A spec's schema as the server makes it, with a field of each kind. */
export const SCHEMA = {
  $defs: {
    Accelerators: {
      type: 'object',
      properties: {
        kind: { default: 'gpu', enum: ['gpu', 'neuron'], type: 'string' },
        count: { default: 1, maximum: 1024, minimum: 0, type: 'integer' }
      }
    },
    Resources: {
      type: 'object',
      properties: {
        nodes: {
          default: 1,
          description: 'Number of nodes.',
          maximum: 64,
          minimum: 1,
          type: 'integer',
          'x-basic': true
        },
        accelerators: {
          anyOf: [{ $ref: '#/$defs/Accelerators' }, { type: 'null' }],
          default: null
        }
      }
    },
    Environment: {
      type: 'object',
      properties: {
        variables: { additionalProperties: { type: 'string' }, type: 'object' },
        secrets: { additionalProperties: { type: 'string' }, type: 'object' },
        setup: {
          anyOf: [{ maxLength: 65536, type: 'string' }, { type: 'null' }],
          default: null
        }
      }
    },
    Slurm: {
      type: 'object',
      properties: {
        flags: {
          additionalProperties: {
            anyOf: [{ type: 'string' }, { type: 'boolean' }]
          },
          type: 'object'
        }
      }
    },
    Kubernetes: {
      type: 'object',
      properties: {
        patch: { additionalProperties: true, type: 'object' }
      }
    }
  },
  properties: {
    format: { const: 1, default: 1, type: 'integer' },
    name: {
      anyOf: [{ type: 'string' }, { type: 'null' }],
      default: null,
      'x-basic': true
    },
    source: { oneOf: [] },
    args: { items: { type: 'string' }, type: 'array' },
    resources: { $ref: '#/$defs/Resources' },
    launcher: {
      anyOf: [
        { enum: ['torchrun', 'python', 'none'], type: 'string' },
        { type: 'null' }
      ],
      default: null,
      'x-basic': true
    },
    environment: { $ref: '#/$defs/Environment' },
    time_limit: {
      anyOf: [
        {
          anyOf: [{ type: 'integer' }, { type: 'string' }],
          examples: ['30m', '2h']
        },
        { type: 'null' }
      ],
      default: null,
      'x-basic': true
    },
    max_restarts: { default: 0, minimum: 0, type: 'integer' },
    auto_resume: {
      anyOf: [{ type: 'boolean' }, { type: 'null' }],
      default: null
    },
    slurm: { $ref: '#/$defs/Slurm' },
    kubernetes: { $ref: '#/$defs/Kubernetes' }
  },
  type: 'object'
};
