/** The element's texts in one language. */
export interface OtpWords {
  readonly label: string;
  readonly pending: string;
  readonly approved: string;
  readonly denied: string;
  readonly rate_limited: string;
  /** For `spam_detected`, `no_attempt`, `without_attempt` and `carrier_refused`. */
  readonly unsent: string;
  readonly valid: string;
  readonly invalid: string;
  readonly already_validated: string;
  readonly expired_auth: string;
  /** For everything else: an error of the call, an outage. */
  readonly failed: string;
  /** The browser's message if a form is submitted with too few digits. */
  readonly incomplete: string;
  readonly resend: string;
  /** The button for a call. */
  readonly call: string;
  /** With `{when}`, which `Intl.RelativeTimeFormat` writes: "in 24 seconds". */
  readonly wait: string;
  readonly ready: string;
  /** By plural category (`Intl.PluralRules`), with `#` for the number. */
  readonly tries: Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string };
}

/** The original texts. */
const own: Readonly<Record<string, OtpWords>> = {
  ar: {
    label: "رمز التحقق",
    pending: "الرمز في طريقه إليك.",
    approved: "رمز جديد في طريقه إليك.",
    denied: "لا يمكن إرسال رمز جديد بعد.",
    rate_limited: "محاولات كثيرة جدًا. يُرجى المحاولة لاحقًا.",
    unsent: "تعذّر إرسال رمز إلى هذا الرقم.",
    valid: "تم التحقق من رقمك.",
    invalid: "الرمز غير صحيح.",
    already_validated: "سبق استخدام هذا الرمز.",
    expired_auth: "انتهت صلاحية هذا الرمز. يُرجى البدء من جديد.",
    failed: "حدث خطأ ما. يُرجى المحاولة مرة أخرى.",
    incomplete: "أدخل الرمز كاملًا.",
    resend: "إرسال رمز جديد",
    call: "الاتصال بي بدلًا من ذلك",
    wait: "رمز جديد {when}",
    ready: "يمكنك الآن طلب رمز جديد.",
    tries: {
      zero: "لم تبقَ محاولات",
      one: "بقيت محاولة واحدة",
      two: "بقيت محاولتان",
      few: "بقيت # محاولات",
      many: "بقيت # محاولة",
      other: "بقيت # محاولة",
    },
  },
  de: {
    label: "Bestätigungscode",
    pending: "Ihr Code ist unterwegs.",
    approved: "Ein neuer Code ist unterwegs.",
    denied: "Ein neuer Code kann noch nicht gesendet werden.",
    rate_limited: "Zu viele Versuche. Bitte versuchen Sie es später erneut.",
    unsent: "An diese Nummer konnte kein Code gesendet werden.",
    valid: "Ihre Nummer ist bestätigt.",
    invalid: "Dieser Code ist nicht richtig.",
    already_validated: "Dieser Code wurde bereits verwendet.",
    expired_auth: "Dieser Code ist abgelaufen. Bitte beginnen Sie von vorn.",
    failed: "Etwas ist schiefgegangen. Bitte versuchen Sie es erneut.",
    incomplete: "Geben Sie den ganzen Code ein.",
    resend: "Neuen Code senden",
    call: "Stattdessen anrufen lassen",
    wait: "Neuer Code {when}",
    ready: "Sie können jetzt einen neuen Code anfordern.",
    tries: { one: "Noch # Versuch", other: "Noch # Versuche" },
  },
  en: {
    label: "Verification code",
    pending: "Your code is on its way.",
    approved: "A new code is on its way.",
    denied: "A new code cannot be sent yet.",
    rate_limited: "Too many attempts. Please try again later.",
    unsent: "We could not send a code to this number.",
    valid: "Your number is verified.",
    invalid: "That code is not right.",
    already_validated: "This code has already been used.",
    expired_auth: "This code has expired. Please start again.",
    failed: "Something went wrong. Please try again.",
    incomplete: "Enter the whole code.",
    resend: "Send a new code",
    call: "Call me instead",
    wait: "New code {when}",
    ready: "You can ask for a new code now.",
    tries: { one: "# try left", other: "# tries left" },
  },
  es: {
    label: "Código de verificación",
    pending: "Tu código está en camino.",
    approved: "Un nuevo código está en camino.",
    denied: "Todavía no se puede enviar un nuevo código.",
    rate_limited: "Demasiados intentos. Inténtalo de nuevo más tarde.",
    unsent: "No hemos podido enviar un código a este número.",
    valid: "Tu número está verificado.",
    invalid: "El código no es correcto.",
    already_validated: "Este código ya se ha utilizado.",
    expired_auth: "Este código ha caducado. Vuelve a empezar.",
    failed: "Algo ha ido mal. Inténtalo de nuevo.",
    incomplete: "Introduce el código completo.",
    resend: "Enviar un nuevo código",
    call: "Recibir una llamada",
    wait: "Nuevo código {when}",
    ready: "Ya puedes pedir un nuevo código.",
    tries: { one: "Queda # intento", other: "Quedan # intentos" },
  },
  fr: {
    label: "Code de vérification",
    pending: "Votre code est en route.",
    approved: "Un nouveau code est en route.",
    denied: "Un nouveau code ne peut pas encore être envoyé.",
    rate_limited: "Trop de tentatives. Réessayez plus tard.",
    unsent: "Nous n’avons pas pu envoyer de code à ce numéro.",
    valid: "Votre numéro est vérifié.",
    invalid: "Ce code est incorrect.",
    already_validated: "Ce code a déjà été utilisé.",
    expired_auth: "Ce code a expiré. Veuillez recommencer.",
    failed: "Une erreur s’est produite. Veuillez réessayer.",
    incomplete: "Saisissez le code en entier.",
    resend: "Envoyer un nouveau code",
    call: "Recevoir plutôt un appel",
    wait: "Nouveau code {when}",
    ready: "Vous pouvez maintenant demander un nouveau code.",
    tries: { one: "# essai restant", other: "# essais restants" },
  },
  hi: {
    label: "सत्यापन कोड",
    pending: "आपका कोड भेजा जा रहा है।",
    approved: "नया कोड भेजा जा रहा है।",
    denied: "अभी नया कोड नहीं भेजा जा सकता।",
    rate_limited: "बहुत ज़्यादा प्रयास हुए। कृपया बाद में फिर कोशिश करें।",
    unsent: "इस नंबर पर कोड नहीं भेजा जा सका।",
    valid: "आपका नंबर सत्यापित हो गया है।",
    invalid: "यह कोड सही नहीं है।",
    already_validated: "इस कोड का उपयोग पहले ही हो चुका है।",
    expired_auth: "इस कोड की समय-सीमा समाप्त हो गई है। कृपया फिर से शुरू करें।",
    failed: "कुछ गड़बड़ हो गई। कृपया फिर कोशिश करें।",
    incomplete: "पूरा कोड दर्ज करें।",
    resend: "नया कोड भेजें",
    call: "इसके बजाय मुझे कॉल करें",
    wait: "नया कोड {when}",
    ready: "अब आप नया कोड माँग सकते हैं।",
    tries: { other: "# प्रयास शेष" },
  },
  it: {
    label: "Codice di verifica",
    pending: "Il codice è in arrivo.",
    approved: "Un nuovo codice è in arrivo.",
    denied: "Non è ancora possibile inviare un nuovo codice.",
    rate_limited: "Troppi tentativi. Riprova più tardi.",
    unsent: "Non è stato possibile inviare un codice a questo numero.",
    valid: "Il tuo numero è verificato.",
    invalid: "Il codice non è corretto.",
    already_validated: "Questo codice è già stato utilizzato.",
    expired_auth: "Questo codice è scaduto. Ricomincia da capo.",
    failed: "Qualcosa è andato storto. Riprova.",
    incomplete: "Inserisci il codice completo.",
    resend: "Invia un nuovo codice",
    call: "Ricevi invece una chiamata",
    wait: "Nuovo codice {when}",
    ready: "Ora puoi richiedere un nuovo codice.",
    tries: { one: "# tentativo rimasto", other: "# tentativi rimasti" },
  },
  ja: {
    label: "確認コード",
    pending: "コードを送信しています。",
    approved: "新しいコードを送信しています。",
    denied: "新しいコードはまだ送信できません。",
    rate_limited: "試行回数が多すぎます。しばらくしてからもう一度お試しください。",
    unsent: "この番号にコードを送信できませんでした。",
    valid: "電話番号が確認されました。",
    invalid: "コードが正しくありません。",
    already_validated: "このコードはすでに使用されています。",
    expired_auth: "コードの有効期限が切れました。最初からやり直してください。",
    failed: "問題が発生しました。もう一度お試しください。",
    incomplete: "コードをすべて入力してください。",
    resend: "新しいコードを送信",
    call: "電話でコードを受け取る",
    wait: "{when}に再送信できます",
    ready: "新しいコードを送信できるようになりました。",
    tries: { other: "残り # 回" },
  },
  ko: {
    label: "인증 코드",
    pending: "코드를 보내고 있습니다.",
    approved: "새 코드를 보내고 있습니다.",
    denied: "아직 새 코드를 보낼 수 없습니다.",
    rate_limited: "시도 횟수가 너무 많습니다. 나중에 다시 시도해 주세요.",
    unsent: "이 번호로 코드를 보낼 수 없습니다.",
    valid: "번호가 인증되었습니다.",
    invalid: "코드가 올바르지 않습니다.",
    already_validated: "이미 사용된 코드입니다.",
    expired_auth: "코드가 만료되었습니다. 처음부터 다시 시작해 주세요.",
    failed: "문제가 발생했습니다. 다시 시도해 주세요.",
    incomplete: "코드를 모두 입력해 주세요.",
    resend: "새 코드 보내기",
    call: "대신 전화로 받기",
    wait: "{when} 다시 보낼 수 있습니다",
    ready: "이제 새 코드를 요청할 수 있습니다.",
    tries: { other: "#회 남음" },
  },
  nl: {
    label: "Verificatiecode",
    pending: "Je code is onderweg.",
    approved: "Er is een nieuwe code onderweg.",
    denied: "Er kan nog geen nieuwe code worden verstuurd.",
    rate_limited: "Te veel pogingen. Probeer het later opnieuw.",
    unsent: "We konden geen code naar dit nummer sturen.",
    valid: "Je nummer is geverifieerd.",
    invalid: "Deze code klopt niet.",
    already_validated: "Deze code is al gebruikt.",
    expired_auth: "Deze code is verlopen. Begin opnieuw.",
    failed: "Er is iets misgegaan. Probeer het opnieuw.",
    incomplete: "Vul de hele code in.",
    resend: "Stuur een nieuwe code",
    call: "Bel me liever",
    wait: "Nieuwe code {when}",
    ready: "Je kunt nu een nieuwe code aanvragen.",
    tries: { one: "Nog # poging", other: "Nog # pogingen" },
  },
  pl: {
    label: "Kod weryfikacyjny",
    pending: "Kod jest w drodze.",
    approved: "Nowy kod jest w drodze.",
    denied: "Nie można jeszcze wysłać nowego kodu.",
    rate_limited: "Zbyt wiele prób. Spróbuj ponownie później.",
    unsent: "Nie udało się wysłać kodu na ten numer.",
    valid: "Numer został zweryfikowany.",
    invalid: "Kod jest nieprawidłowy.",
    already_validated: "Ten kod został już użyty.",
    expired_auth: "Ten kod wygasł. Zacznij od nowa.",
    failed: "Coś poszło nie tak. Spróbuj ponownie.",
    incomplete: "Wpisz cały kod.",
    resend: "Wyślij nowy kod",
    call: "Zadzwoń do mnie",
    wait: "Nowy kod {when}",
    ready: "Możesz teraz poprosić o nowy kod.",
    tries: { one: "Pozostała # próba", few: "Pozostały # próby", many: "Pozostało # prób", other: "Pozostało # próby" },
  },
  pt: {
    label: "Código de verificação",
    pending: "O código está a caminho.",
    approved: "Um novo código está a caminho.",
    denied: "Ainda não é possível enviar um novo código.",
    rate_limited: "Muitas tentativas. Tente novamente mais tarde.",
    unsent: "Não foi possível enviar um código para este número.",
    valid: "O seu número está verificado.",
    invalid: "O código não está correto.",
    already_validated: "Este código já foi usado.",
    expired_auth: "Este código expirou. Comece novamente.",
    failed: "Ocorreu um erro. Tente novamente.",
    incomplete: "Digite o código completo.",
    resend: "Enviar um novo código",
    call: "Ligar para mim",
    wait: "Novo código {when}",
    ready: "Agora pode pedir um novo código.",
    tries: { one: "Resta # tentativa", other: "Restam # tentativas" },
  },
  ru: {
    label: "Код подтверждения",
    pending: "Код уже отправляется.",
    approved: "Новый код уже отправляется.",
    denied: "Новый код пока нельзя отправить.",
    rate_limited: "Слишком много попыток. Попробуйте позже.",
    unsent: "Не удалось отправить код на этот номер.",
    valid: "Номер подтверждён.",
    invalid: "Неверный код.",
    already_validated: "Этот код уже использован.",
    expired_auth: "Срок действия кода истёк. Начните заново.",
    failed: "Что-то пошло не так. Попробуйте ещё раз.",
    incomplete: "Введите код полностью.",
    resend: "Отправить новый код",
    call: "Позвонить мне",
    wait: "Новый код {when}",
    ready: "Теперь можно запросить новый код.",
    tries: { one: "Осталась # попытка", few: "Осталось # попытки", many: "Осталось # попыток", other: "Осталось # попытки" },
  },
  tr: {
    label: "Doğrulama kodu",
    pending: "Kodunuz yolda.",
    approved: "Yeni kod yolda.",
    denied: "Henüz yeni kod gönderilemiyor.",
    rate_limited: "Çok fazla deneme yapıldı. Lütfen daha sonra tekrar deneyin.",
    unsent: "Bu numaraya kod gönderilemedi.",
    valid: "Numaranız doğrulandı.",
    invalid: "Bu kod doğru değil.",
    already_validated: "Bu kod zaten kullanılmış.",
    expired_auth: "Bu kodun süresi doldu. Lütfen yeniden başlayın.",
    failed: "Bir sorun oluştu. Lütfen tekrar deneyin.",
    incomplete: "Kodun tamamını girin.",
    resend: "Yeni kod gönder",
    call: "Bunun yerine beni ara",
    wait: "Yeni kod {when}",
    ready: "Artık yeni bir kod isteyebilirsiniz.",
    tries: { other: "# deneme hakkınız kaldı" },
  },
  zh: {
    label: "验证码",
    pending: "验证码正在发送。",
    approved: "新的验证码正在发送。",
    denied: "暂时无法发送新的验证码。",
    rate_limited: "尝试次数过多，请稍后再试。",
    unsent: "无法向此号码发送验证码。",
    valid: "您的号码已验证。",
    invalid: "验证码不正确。",
    already_validated: "此验证码已被使用。",
    expired_auth: "验证码已过期，请重新开始。",
    failed: "出了点问题，请重试。",
    incomplete: "请输入完整的验证码。",
    resend: "发送新的验证码",
    call: "改用电话接收",
    wait: "{when}可重新发送",
    ready: "现在可以获取新的验证码。",
    tries: { other: "还可尝试 # 次" },
  },
  "zh-Hant": {
    label: "驗證碼",
    pending: "驗證碼正在傳送。",
    approved: "新的驗證碼正在傳送。",
    denied: "暫時無法傳送新的驗證碼。",
    rate_limited: "嘗試次數過多，請稍後再試。",
    unsent: "無法傳送驗證碼到此號碼。",
    valid: "您的號碼已驗證。",
    invalid: "驗證碼不正確。",
    already_validated: "此驗證碼已被使用。",
    expired_auth: "驗證碼已過期，請重新開始。",
    failed: "發生問題，請重試。",
    incomplete: "請輸入完整的驗證碼。",
    resend: "傳送新的驗證碼",
    call: "改用電話接收",
    wait: "{when}可重新傳送",
    ready: "現在可以取得新的驗證碼。",
    tries: { other: "還可嘗試 # 次" },
  },
};

/** Shared by all copies of this file on a page, because the element is defined once. */
const shared = globalThis as { [home: symbol]: Record<string, OtpWords> | undefined };

/**
 * The texts in use, by BCP 47 language, with the script if it matters (`zh-Hant`). Change any of them or add your own:
 * `otpWords.sv = { … }`.
 */
export const otpWords: Record<string, OtpWords> = (shared[Symbol.for("phoneproof.otpWords")] ??= { ...own });

/**
 * The language of `otpWords` for a tag: the tag itself, its language and script ("zh-TW" is written in `Hant`), its
 * language alone, or English.
 */
export function languageOf(tag: string): string {
  try {
    const { language, script } = new Intl.Locale(tag).maximize();
    return [tag, `${language}-${script}`, language].find((one) => Object.hasOwn(otpWords, one)) ?? "en";
  } catch {
    return "en";
  }
}

/** Statuses with a text of their own. Those of an attempt that sent nothing share one, and so do all other errors. */
const worded = ["pending", "approved", "denied", "rate_limited", "valid", "invalid", "already_validated", "expired_auth"] as const;
const unsent: readonly string[] = ["spam_detected", "no_attempt", "without_attempt", "carrier_refused"];

/** The text for a status or an error code. */
export function wordsFor(lang: string, status: string): string {
  return wordsOf(lang)[worded.find((one) => one === status) ?? (unsent.includes(status) ? "unsent" : "failed")];
}

/** "3 tries left". */
export function triesLeft(lang: string, left: number): string {
  const { tries } = wordsOf(lang);
  return (tries[new Intl.PluralRules(lang).select(left)] ?? tries.other).replace("#", left.toLocaleString(lang));
}

/** "New code in 24 seconds". `text`: with `{when}`. */
export function waitingFor(lang: string, seconds: number, text = wordsOf(lang).wait): string {
  const format = new Intl.RelativeTimeFormat(lang);
  const when = seconds < 120 ? format.format(seconds, "second") : format.format(Math.ceil(seconds / 60), "minute");
  return text.replace("{when}", when);
}

/** Texts that a page omits come from the element, in that language or in English. */
export function wordsOf(lang: string): OtpWords {
  return { ...own.en, ...own[lang], ...otpWords[lang] } as OtpWords;
}
