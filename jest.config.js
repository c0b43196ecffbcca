const jestJupyterLab = require('@jupyterlab/testutils/lib/jest-config');

// Packages that ship ES modules only: Jest must transform them, unlike the rest of node_modules.
const esModules = [
  '@codemirror',
  '@jupyter/react-components',
  '@jupyter/web-components',
  '@jupyter/ydoc',
  '@jupyterlab/',
  '@microsoft/',
  'exenv-es6',
  'lib0',
  'nanoid',
  'vscode-ws-jsonrpc',
  'y-protocols',
  'y-websocket',
  'yjs'
].join('|');

const base = jestJupyterLab(__dirname);

module.exports = {
  ...base,
  automock: false,
  // A busy machine takes longer than Jest's 5 s; `until` ends before.
  testTimeout: 30_000,
  // The base writes a junit.xml that nobody reads.
  reporters: ['default'],
  collectCoverageFrom: [
    'src/**/*.{ts,tsx}',
    '!src/**/*.d.ts',
    '!src/**/__tests__/**'
  ],
  coverageReporters: ['lcov', 'text'],
  // The built extension has a package.json of the same name.
  modulePathIgnorePatterns: [
    '<rootDir>/hyperpod_jlab/labextension',
    '<rootDir>/\\.ci-work',
    '<rootDir>/\\.venv'
  ],
  testRegex:
    'src/.*/__tests__/.*\\.spec\\.tsx?$|src/__tests__/.*\\.spec\\.tsx?$',
  transformIgnorePatterns: [`/node_modules/(?!${esModules}).+`]
};
