// What the pages do beyond being read: colours, copying, the address of this server in examples, and the search.
const exampleUrl = 'http://127.0.0.1:8080';
const root = document.documentElement;

const make = (tag, members = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), members);
  element.append(...children);
  return element;
};

/** Examples name the server they were read from. */
const showOrigin = () => {
  if (location.origin === exampleUrl) return;
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.data.includes(exampleUrl) || !node.parentElement.closest('code')) continue;
    node.data = node.data.replaceAll(exampleUrl, location.origin);
  }
};

const offerCopies = () => {
  for (const button of document.querySelectorAll('button.copy')) {
    button.hidden = false;
    const code = button.closest('figure').querySelector('code');
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
      setTimeout(() => {
        button.textContent = 'Copy';
      }, 2000);
    });
  }
};

const offerThemes = () => {
  const button = document.querySelector('button.theme');
  const isDark = () =>
    root.dataset.theme
      ? root.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches;
  const label = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `Show the page ${isDark() ? 'light' : 'dark'}`);
  };
  button.hidden = false;
  label();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', label);
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try {
      localStorage.setItem('tessera-theme', root.dataset.theme);
    } catch {
      // It holds for this page then.
    }
    label();
  });
};

let loading;
/** The index, loaded when somebody first searches. */
const load = ({ index, engine }) => {
  loading ??= Promise.all([import(engine), fetch(index).then((answer) => answer.text())]).then(
    ([{ default: MiniSearch }, text]) =>
      MiniSearch.loadJSON(text, {
        fields: ['title', 'summary', 'text'],
        storeFields: ['title', 'summary'],
      }),
  );
  // Whoever searches again after a failure tries again.
  loading.catch(() => {
    loading = undefined;
  });
  return loading;
};

const search = async (button, words) => {
  const index = await load(button.dataset);
  const found = index.search(words, {
    boost: { title: 4, summary: 2 },
    prefix: true,
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    combineWith: 'AND',
  });
  // Who types a name whole wants its page.
  const wanted = words.trim().toUpperCase();
  const isWanted = ({ title }) => title.toUpperCase() === wanted;
  return [...found.filter(isWanted), ...found.filter((each) => !isWanted(each))].slice(0, 12);
};

const result = ({ id, title, summary }) =>
  make(
    'li',
    {},
    make(
      'a',
      { href: id },
      make('strong', { textContent: title }),
      make('span', { textContent: summary }),
    ),
  );

const createDialog = (button) => {
  // No field of type search: its first Escape would only empty it.
  const input = make('input', {
    type: 'text',
    autocomplete: 'off',
    spellcheck: false,
    placeholder: 'Search pages, calls and error codes',
    maxLength: 200,
  });
  input.setAttribute('role', 'searchbox');
  input.setAttribute('aria-label', 'Search the documentation');
  const list = make('ul');
  const status = make('p', { className: 'search-status' });
  status.setAttribute('role', 'status');
  const dialog = make('dialog', { className: 'search' }, input, status, list);
  dialog.setAttribute('aria-label', 'Search');
  document.body.append(dialog);

  const show = (found, none) => {
    list.replaceChildren(...found.map(result));
    status.textContent = found.length > 0 ? `${found.length} found` : none;
  };
  input.addEventListener('input', async () => {
    const words = input.value;
    try {
      const found = words.trim() === '' ? [] : await search(button, words);
      if (words === input.value) show(found, words.trim() === '' ? '' : 'Nothing found.');
    } catch {
      show([], 'The search could not be loaded. Reload the page, or look under All pages below.');
    }
  });
  dialog.addEventListener('keydown', (event) => {
    const links = [...list.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      (links[to] ?? input).focus();
    }
    if (event.key === 'Enter' && document.activeElement === input) links[0]?.click();
  });
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  return { dialog, input };
};

const offerSearch = () => {
  const button = document.querySelector('button.search-open');
  let made;
  const open = () => {
    made ??= createDialog(button);
    if (!made.dialog.open) made.dialog.showModal();
    made.input.select();
    load(button.dataset).catch(() => undefined);
  };
  button.hidden = false;
  button.addEventListener('click', open);
  addEventListener('keydown', (event) => {
    const typing = event.target.closest?.('input, textarea, select');
    const slash = event.key === '/' && !typing;
    const combination = event.key === 'k' && (event.metaKey || event.ctrlKey);
    if (!slash && !combination) return;
    event.preventDefault();
    open();
  });
};

showOrigin();
offerCopies();
offerThemes();
offerSearch();
