// Which passwords are refused: the commonest ones, and those made of what everybody knows about the account.
import { invalid } from '../kernel/errors.ts';

/** Shorter ones are refused for their length before anything else is asked of them. */
const shortest = 8;
const product = 'tessera';
/** Shorter words stand in too many good passwords. */
const contextMin = 4;

let common: Promise<ReadonlySet<string>> | undefined;

// Loaded when the first password is chosen: a worker never needs it.
const loadCommon = async (): Promise<ReadonlySet<string>> => {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  const list = dictionary['passwords-common'] as unknown as string[];
  // All of them: the list was counted from leaked passwords, so what stands in it is what guessers try.
  return new Set(list.filter((password) => password.length >= shortest));
};

export type PasswordContext = { email: string; company: string | null };

/** The words around an account that a guesser tries first. */
const contextWords = ({ email, company }: PasswordContext): string[] =>
  [email.split('@')[0] ?? '', company ?? '', product]
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word.length >= contextMin);

/** What is left of a password when a word is taken out of it is all there is to guess. */
const isAroundWord = (password: string, word: string): boolean => {
  const rest = password.replaceAll(word, '');
  return rest.length < password.length && /^[\d\W_]{0,6}$/.test(rest);
};

/**
 * Refuses a password that a guesser tries early; nothing else is asked of its characters (OWASP ASVS 6.2).
 * @throws VALIDATION_ERROR naming `field`
 */
export const requireGoodPassword = async (
  field: string,
  password: string,
  context: PasswordContext,
): Promise<void> => {
  common ??= loadCommon();
  const plain = password.toLowerCase();
  if ((await common).has(plain)) {
    throw invalid({
      field,
      issue: 'is one of the most common passwords, known from leaks; choose another',
    });
  }
  if (contextWords(context).some((word) => isAroundWord(plain, word))) {
    const issue = 'must be more than your address, your company or the name of this service';
    throw invalid({ field, issue });
  }
};
