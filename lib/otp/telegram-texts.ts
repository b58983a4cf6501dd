// What the bot says, in the recipient's language where it is one of the contract's two.

type Texts = {
  welcome: string;
  linkGone: string;
  alreadyLinked: string;
  askContact(maskedPhone: string): string;
  shareButton: string;
  wrongContact(maskedPhone: string): string;
  linked(codeFollows: boolean): string;
};

const english: Texts = {
  welcome:
    'Hello. I deliver verification codes. Open the link you were given, and I will take it from there.',
  linkGone: 'This link is not valid any more. Ask for a new one where you wanted to sign in.',
  alreadyLinked: 'You are linked already. Codes for your number arrive here.',
  askContact: (phone) =>
    `One step left: share your own phone number, so that codes for ${phone} reach nobody but you.`,
  shareButton: 'Share my phone number',
  wrongContact: (phone) =>
    `That is not ${phone}, or not your own contact. Tap the button below to share your own number.`,
  linked: (codeFollows) =>
    codeFollows
      ? 'Thank you. Your code follows.'
      : 'Thank you. From now on your codes arrive here.',
};

const arabic: Texts = {
  welcome: 'مرحبًا. أنا أوصل رموز التحقق. افتح الرابط الذي تلقيته وسأكمل من هناك.',
  linkGone: 'هذا الرابط لم يعد صالحًا. اطلب رابطًا جديدًا من حيث أردت تسجيل الدخول.',
  alreadyLinked: 'رقمك مرتبط بالفعل. ستصلك الرموز هنا.',
  askContact: (phone) => `بقيت خطوة واحدة: شارك رقم هاتفك حتى لا تصل رموز ${phone} إلى أحد سواك.`,
  shareButton: 'مشاركة رقم هاتفي',
  wrongContact: (phone) => `هذا ليس ${phone} أو ليس جهة اتصالك أنت. اضغط الزر أدناه لمشاركة رقمك.`,
  linked: (codeFollows) =>
    codeFollows ? 'شكرًا. رمزك في الطريق.' : 'شكرًا. ستصلك الرموز هنا من الآن.',
};

/** The texts for a Telegram language code; English when it is not Arabic. */
export const texts = (language: string | null): Texts =>
  language?.startsWith('ar') ? arabic : english;
