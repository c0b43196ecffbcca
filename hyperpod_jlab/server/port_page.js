/**
 * Runs before a program's own scripts in its sandboxed page, where the browser throws for what follows.
 *
 * Storage and cookies are kept in the page's memory, until it is left or loaded anew. Programs such as TensorBoard only
 * remember settings there, but do not begin without.
 */
(() => {
  'use strict';

  const throws = read => {
    try {
      read();
      return false;
    } catch {
      return true;
    }
  };

  /** What localStorage can: methods, and keys as properties. */
  function makeStorage() {
    const kept = new Map();
    const methods = {
      getItem: key => kept.get(String(key)) ?? null,
      setItem: (key, value) => void kept.set(String(key), String(value)),
      removeItem: key => void kept.delete(String(key)),
      clear: () => kept.clear(),
      key: index => [...kept.keys()][index] ?? null
    };
    const own = (_, key) => (key === 'length' ? kept.size : methods[key]);
    return new Proxy(Object.create(Storage.prototype), {
      get: (target, key) =>
        own(target, key) ??
        (kept.has(key) ? kept.get(key) : Reflect.get(Object.prototype, key)),
      set: (_, key, value) => (kept.set(String(key), String(value)), true),
      has: (_, key) => key === 'length' || key in methods || kept.has(key),
      deleteProperty: (_, key) => (kept.delete(key), true),
      ownKeys: () => [...kept.keys()],
      getOwnPropertyDescriptor: (_, key) =>
        kept.has(key)
          ? {
              value: kept.get(key),
              writable: true,
              enumerable: true,
              configurable: true
            }
          : undefined
    });
  }

  for (const name of ['localStorage', 'sessionStorage']) {
    if (throws(() => window[name])) {
      const value = makeStorage();
      Object.defineProperty(window, name, { value, configurable: true });
    }
  }

  if (throws(() => document.cookie)) {
    const cookies = new Map();
    Object.defineProperty(document, 'cookie', {
      configurable: true,
      get: () =>
        [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      set: text => {
        const [pair, ...attributes] = String(text).split(';');
        const at = pair.indexOf('=');
        const name = pair.slice(0, Math.max(at, 0)).trim();
        const isOver = attributes.some(
          attribute =>
            /^\s*max-age\s*=\s*(0|-)/i.test(attribute) ||
            (/^\s*expires\s*=/i.test(attribute) &&
              Date.parse(attribute.split('=')[1]) <= Date.now())
        );
        if (isOver) {
          cookies.delete(name);
        } else {
          cookies.set(name, pair.slice(at + 1).trim());
        }
      }
    });
  }

  // A program that offers to work offline looks whether this is there, and goes on without.
  if (throws(() => navigator.serviceWorker)) {
    delete Navigator.prototype.serviceWorker;
  }

  // A worker's script must be of the page's own origin, which has none: one is made here, which loads the script.
  const origin = new URL(document.baseURI).origin;
  const workerScript = (address, isModule) => {
    const url = new URL(address, document.baseURI);
    if (url.origin !== origin) {
      return address;
    }
    const name = JSON.stringify(url.href);
    const text = isModule ? `import ${name};` : `importScripts(${name});`;
    return URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  };
  window.Worker = class Worker extends window.Worker {
    constructor(address, options) {
      super(workerScript(address, options?.type === 'module'), options);
    }
  };

  // The address bar may keep the path that it has; the page goes on with the new state.
  for (const name of ['pushState', 'replaceState']) {
    const native = history[name];
    history[name] = function (state, unused, ...url) {
      try {
        native.call(this, state, unused, ...url);
      } catch (error) {
        if (error.name !== 'SecurityError') {
          throw error;
        }
        native.call(this, state, unused);
      }
    };
  }
})();
