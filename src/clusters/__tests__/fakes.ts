/** A node as the server sends it. */
export const NODE = {
  name: 'n1',
  state: 'drained',
  reason: 'disk = "full"',
  reason_since: '2026-11-21T18:54:51.000Z',
  reason_by: 'root',
  cpus: 16,
  cpus_free: 0,
  queues: ['dev', 'batch'],
  features: [],
  jobs: ['7'],
  accelerators: 4,
  accelerators_free: 0,
  resources: [
    {
      name: 'gpu',
      type: 'h100',
      total: 4,
      used: 2,
      free: 0,
      used_at: [0, 3],
      shared_at: [1],
      first: 0,
      accelerator: true
    },
    {
      name: 'fpga',
      type: null,
      total: 2,
      used: 1,
      free: 0,
      used_at: [],
      shared_at: [],
      first: null,
      accelerator: false
    }
  ]
};
