/** Each attack gives what it got; what begins with "refused" is nothing. */
const refused = error => `refused: ${error.name ?? error}`;

const wait = event =>
  new Promise((resolve, reject) => {
    setTimeout(() => reject({ name: 'nothing happened' }), 5000);
    event(resolve, reject);
  });

const read = (address, options) =>
  fetch(address, options).then(async answer =>
    answer.type === 'opaque'
      ? refused('opaque')
      : `${answer.status} ${await answer.text()}`
  );

function frame(address) {
  const made = document.createElement('iframe');
  made.name = `frame-${Math.random()}`;
  if (address) {
    made.src = address;
  }
  document.body.append(made);
  return made;
}

async function inFrame(address) {
  const made = frame(address);
  await wait(resolve => made.addEventListener('load', resolve));
  return made.contentWindow.document.documentElement.outerHTML;
}

/** A form is sent without a look at the answer; the test looks whether it did anything. */
async function post(address, fields) {
  const form = document.createElement('form');
  const target = frame();
  Object.assign(form, { method: 'post', action: address, target: target.name });
  for (const [name, value] of Object.entries(fields)) {
    const input = document.createElement('input');
    Object.assign(input, { name, value, type: 'hidden' });
    form.append(input);
  }
  document.body.append(form);
  const loaded = wait(resolve => target.addEventListener('load', resolve));
  form.submit();
  await loaded;
  return target.contentWindow.document.documentElement.outerHTML;
}

const blank = () => frame().contentWindow;
const native = (prototype, name) =>
  Object.getOwnPropertyDescriptor(prototype, name).get;

const withCookies = { credentials: 'include' };
const blind = { ...withCookies, mode: 'no-cors', method: 'POST', body: '{}' };
const opening = new URL('../open', document.baseURI).pathname;

const ATTACKS = {
  popup: async () => {
    const popup = window.open('/lab');
    await new Promise(resolve => setTimeout(resolve, 3000));
    try {
      return popup.document.documentElement.outerHTML;
    } finally {
      popup.close();
    }
  },
  lab: () => read('/lab'),
  labWithCookies: () => read('/lab', withCookies),
  labUnseen: () => read('/lab', { ...withCookies, mode: 'no-cors' }),
  api: () => read('/api/contents'),
  apiWithCookies: () => read('/api/contents', withCookies),
  runs: () => read('/hyperpod/api/v1/runs', withCookies),
  terminal: () => read('/api/terminals', { ...blind, mode: 'cors' }),
  terminalUnseen: () => read('/api/terminals', blind),
  kernelUnseen: () => read('/api/kernels', blind),
  ticket: () => read(opening, { ...blind, mode: 'cors' }),
  form: () => post('/api/terminals', { a: '1' }),
  formWithXsrf: () => post('/api/terminals', { _xsrf: 'evil' }),
  frame: () => inFrame('/lab'),
  frameOfFile: () => inFrame('/api/contents'),
  opener: () => window.opener.document.title,
  cookie: () => native(Document.prototype, 'cookie').call(document),
  cookieOfFrame: () => blank().document.cookie,
  storage: () => `got ${blank().localStorage.length}`,
  database: () =>
    wait((resolve, reject) => {
      const asked = indexedDB.open('x');
      asked.onsuccess = () => resolve('got it');
      asked.onerror = () => reject(asked.error);
    }),
  serviceWorker: () =>
    blank()
      .navigator.serviceWorker.register('sw.js', { scope: '/' })
      .then(() => 'got it'),
  socket: () =>
    wait((resolve, reject) => {
      const address = '/hyperpod/api/v1/logs';
      const socket = new WebSocket(`ws://${location.host}${address}`);
      socket.onopen = () => resolve('got it');
      socket.onerror = () => reject({ name: 'closed' });
    }),
  worker: () =>
    wait(resolve => {
      const worker = new Worker('worker.js');
      worker.onmessage = ({ data }) => resolve(data);
      worker.postMessage(`${location.origin}/lab`);
    })
};

/** What a peaceful program does. */
const OWN = {
  data: () =>
    read('say?x=1', { method: 'PUT', headers: { 'X-Own': '1' }, body: 'b' }),
  module: () =>
    import(new URL('module.js', document.baseURI)).then(
      loaded => loaded.default
    ),
  storage: () => {
    localStorage.setItem('a', 'b');
    localStorage.c = 'd';
    return `${localStorage.getItem('a')}${localStorage.c}${localStorage.length}`;
  },
  cookie: () => {
    document.cookie = 'a=1; path=/';
    document.cookie = 'b=2';
    document.cookie = 'a=; max-age=0';
    return document.cookie;
  },
  state: () => {
    history.pushState({ at: 1 }, '', '?at=1');
    return JSON.stringify(history.state);
  },
  worker: () =>
    wait(resolve => {
      const worker = new Worker('worker.js');
      worker.onmessage = ({ data }) => resolve(data);
      worker.postMessage(new URL('say', document.baseURI).href);
    }),
  frame: () =>
    wait(resolve => {
      addEventListener('message', ({ data }) => resolve(data));
      frame('inner.html');
    }),
  socket: () =>
    wait((resolve, reject) => {
      const address = new URL('socket', document.baseURI);
      address.protocol = 'ws:';
      const socket = new WebSocket(address);
      socket.onopen = () => socket.send('echo');
      socket.onmessage = ({ data }) => resolve(data);
      socket.onerror = () => reject({ name: 'closed' });
    })
};

async function all(tries) {
  const done = Object.entries(tries).map(async ([name, attempt]) => {
    try {
      const late = wait(() => undefined);
      return [name, await Promise.race([attempt(), late])];
    } catch (error) {
      return [name, refused(error)];
    }
  });
  return Object.fromEntries(await Promise.all(done));
}

document.getElementById('go').addEventListener('click', async () => {
  const own = await all(OWN);
  const attacks = await all(ATTACKS);
  const result = { origin: self.origin, own, attacks };
  document.getElementById('result').textContent = JSON.stringify(result);
});
