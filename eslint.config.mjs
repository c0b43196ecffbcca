import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import prettierRecommended from 'eslint-plugin-prettier/recommended';
import { defineConfig } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** JupyterLab's own rules, of which many come as warnings, all as errors. */
const jupyterRules = jupyter.configs.recommended.map(config => ({
  ...config,
  plugins: { jupyter },
  rules: Object.fromEntries(
    Object.keys(config.rules ?? {}).map(rule => [rule, 'error'])
  )
}));

export default defineConfig([
  {
    ignores: [
      '**/node_modules',
      '**/*.js',
      '**/*.d.ts',
      '.bench',
      '.ci-work',
      '.demo',
      '.venv',
      'coverage',
      'hyperpod_jlab',
      'lib',
      // Generated: jlpm build:types.
      'src/api/generated'
    ]
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [js.configs.recommended, tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      globals: { ...globals.browser, ...globals.es2018 },
      parserOptions: {
        project: 'tsconfig.test.json',
        sourceType: 'module'
      }
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      // Lumino's signals take the method and its object apart: connect(this._onChange, this).
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      // JupyterLab groups command ids in namespaces.
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/no-non-null-assertion': 'error',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'max-lines': ['error', { max: 700 }],
      'max-lines-per-function': ['error', { max: 100, skipBlankLines: true }],
      'no-console': ['error', { allow: ['warn', 'error'] }],
      'prefer-arrow-callback': 'error'
    }
  },
  {
    files: ['**/__tests__/**'],
    languageOptions: { globals: { ...globals.jest } },
    // A describe block is as long as its tests are many.
    rules: { 'max-lines-per-function': 'off' }
  },
  ...jupyterRules,
  {
    files: ['**/*.ts', '**/*.tsx'],
    plugins: { jupyter },
    rules: {
      // The clients and models that all plugins share are small and needed at once; pages and dialogs are bigger.
      'jupyter/prefer-lazy-imports': ['error', { minimumSize: 65536 }]
    }
  },
  prettierRecommended
]);
