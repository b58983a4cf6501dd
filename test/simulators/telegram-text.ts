// What the Bot API checks of a text and its keyboard, and how the reader sees it (reference 02 section 9.2).
import { isObject, type JsonObject } from './http.ts';

/** A call the Bot API refuses; the HTTP status is the code. */
export class TelegramFailure extends Error {
  readonly code: number;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: number, description: string, retryAfterSeconds?: number) {
    super(description);
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

const badRequest = (text: string) => new TelegramFailure(400, `Bad Request: ${text}`);

const tags = new Set([
  ...['b', 'strong', 'i', 'em', 'u', 'ins', 's', 'strike', 'del', 'code', 'pre', 'a'],
  ...['span', 'tg-spoiler', 'tg-emoji', 'blockquote'],
]);
const entities: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"' };
const maxLength = 4096;

const decodeEntities = (text: string): string =>
  text.replace(/&(?:#(\d+)|([a-z]+));/g, (whole, number, name) =>
    number ? String.fromCodePoint(Math.min(Number(number), 0x10ffff)) : (entities[name] ?? whole),
  );

/** The visible text of HTML as the Bot API takes it. @throws TelegramFailure 400 for tags it would refuse */
const fromHtml = (html: string): string => {
  const open: string[] = [];
  const text = html.replace(/<(\/?)([a-z-]*)[^>]*>?/gi, (whole, closing, name, offset) => {
    const tag = String(name).toLowerCase();
    if (!whole.endsWith('>') || !tags.has(tag)) {
      throw badRequest(
        `can't parse entities: Unsupported start tag "${tag}" at byte offset ${offset}`,
      );
    }
    if (closing && open.pop() !== tag) {
      throw badRequest(`can't parse entities: Unexpected end tag at byte offset ${offset}`);
    }
    if (!closing) open.push(tag);
    return '';
  });
  if (open.length > 0) {
    throw badRequest(
      `can't parse entities: Can't find end tag corresponding to start tag "${open.at(-1)}"`,
    );
  }
  return decodeEntities(text);
};

/** The text as it is shown. @throws TelegramFailure 400 */
export const readText = ({ text, parse_mode: mode }: JsonObject): string => {
  if (typeof text !== 'string') throw badRequest('message text is empty');
  if (mode !== undefined && !['HTML', 'Markdown', 'MarkdownV2'].includes(String(mode))) {
    throw badRequest('unsupported parse_mode');
  }
  const shown = mode === 'HTML' ? fromHtml(text) : text;
  if (shown.trim() === '') throw badRequest('message text is empty');
  if (shown.length > maxLength) throw badRequest('message is too long');
  return shown;
};

export type Markup = {
  copyText: string | undefined;
  asksContact: boolean;
  removesKeyboard: boolean;
  /** Inline keyboards are echoed in the answer. */
  inline: JsonObject | undefined;
};

const rowsOf = (value: unknown): JsonObject[] => {
  const rows: unknown[] = Array.isArray(value) ? value : [undefined];
  const buttons = rows.flatMap((row): unknown[] => (Array.isArray(row) ? row : [undefined]));
  if (!buttons.every(isObject)) throw badRequest('field "keyboard" must be an Array of Arrays');
  return buttons;
};

const actions = [
  ...['url', 'callback_data', 'copy_text', 'web_app', 'login_url', 'pay', 'callback_game'],
  ...['switch_inline_query', 'switch_inline_query_current_chat'],
];

const readInlineButton = (button: JsonObject): string | undefined => {
  if (typeof button.text !== 'string' || button.text === '') {
    throw badRequest('can\'t parse inline keyboard button: Field "text" must be of type String');
  }
  if (!actions.some((action) => button[action] !== undefined)) {
    throw badRequest(
      "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
    );
  }
  if (button.copy_text === undefined) return undefined;
  const text = isObject(button.copy_text) ? button.copy_text.text : undefined;
  if (typeof text !== 'string' || text.length < 1 || text.length > 256) {
    throw badRequest('BUTTON_COPY_TEXT_INVALID');
  }
  return text;
};

const readKeyboard = (keyboard: unknown): boolean => {
  let asks = false;
  const rows: unknown[] = Array.isArray(keyboard) ? keyboard : [];
  for (const button of rows.flat()) {
    const text = isObject(button) ? button.text : button;
    if (typeof text !== 'string' || text === '') throw badRequest("can't parse keyboard button");
    if (isObject(button) && button.request_contact === true) asks = true;
  }
  return asks;
};

/** Reads reply_markup, an object or its JSON text. @throws TelegramFailure 400 */
export const readMarkup = (given: unknown): Markup => {
  const none = {
    copyText: undefined,
    asksContact: false,
    removesKeyboard: false,
    inline: undefined,
  };
  if (given === undefined) return none;
  let markup: unknown = given;
  try {
    if (typeof given === 'string') markup = JSON.parse(given);
  } catch {
    throw badRequest("can't parse reply keyboard markup JSON object");
  }
  if (!isObject(markup)) throw badRequest('object expected as reply markup');
  if (markup.inline_keyboard !== undefined) {
    const [copyText] = rowsOf(markup.inline_keyboard)
      .map(readInlineButton)
      .filter((text) => text !== undefined);
    return { ...none, copyText, inline: markup };
  }
  if (markup.keyboard !== undefined) {
    if (!Array.isArray(markup.keyboard)) throw badRequest('field "keyboard" must be an Array');
    return { ...none, asksContact: readKeyboard(markup.keyboard) };
  }
  return { ...none, removesKeyboard: markup.remove_keyboard === true };
};

/** The code a message carries: what its copy button copies, else the only run of six digits. */
export const codeIn = (text: string, copyText: string | undefined): string | null =>
  copyText ?? /(?<!\d)\d{6}(?:\d{2})?(?!\d)/.exec(text)?.[0] ?? null;
