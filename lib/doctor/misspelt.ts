// Variables that are nearly a setting: whoever misspells one believes that it is set.

/** Whether one word becomes the other when at most so many letters are changed, left out, put in or swapped. */
const isNear = (one: string, other: string, most: number): boolean => {
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  const [a, b] = [one.slice(same), other.slice(same)];
  if (a === b) return true;
  if (most === 0) return false;
  const isSwapped = a[0] === b[1] && a[1] === b[0];
  return (
    isNear(a.slice(1), b.slice(1), most - 1) ||
    isNear(a.slice(1), b, most - 1) ||
    isNear(a, b.slice(1), most - 1) ||
    (isSwapped && isNear(a.slice(2), b.slice(2), most - 1))
  );
};

/** Short names have neighbours that mean something else: MYSQL_PORT is no misspelt MYSQL_POOL. */
const mostFor = (name: string): number => (name.length > 12 ? 2 : 1);
const shortest = 8;

/** Names in the environment that no setting has, each with the unset setting it was meant for. */
export const misspelt = (
  env: Record<string, string | undefined>,
  known: readonly string[],
): { name: string; meant: string }[] => {
  const unset = known.filter((name) => name.length >= shortest && (env[name] ?? '') === '');
  return Object.keys(env)
    .filter((name) => !known.includes(name))
    .flatMap((name) => {
      const meant = unset.find((setting) => isNear(name, setting, mostFor(setting)));
      return meant === undefined ? [] : [{ name, meant }];
    });
};
