import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { forLanguage } from "./by-language.js";

/** What calls say in one language. */
export interface Speech {
  /** The language's tag at each carrier. */
  readonly twilio: string;
  readonly vonage: string;
  /** Asks for a key. */
  readonly press: string;
  /** Comes before the digits. */
  readonly code: string;
}

/** By BCP 47 tag, in lower case. */
const speeches: ReadonlyMap<string, Speech> = new Map<string, Speech>([
  ["en", { twilio: "en-US", vonage: "en-US", press: "Press any key to hear your verification code.", code: "Your verification code is:" }],
  [
    "fr",
    {
      twilio: "fr-FR",
      vonage: "fr-FR",
      press: "Appuyez sur une touche pour entendre votre code de vérification.",
      code: "Votre code de vérification est :",
    },
  ],
  [
    "de",
    {
      twilio: "de-DE",
      vonage: "de-DE",
      press: "Drücken Sie eine beliebige Taste, um Ihren Bestätigungscode zu hören.",
      code: "Ihr Bestätigungscode lautet:",
    },
  ],
  ["es", { twilio: "es-ES", vonage: "es-ES", press: "Pulse cualquier tecla para escuchar su código de verificación.", code: "Su código de verificación es:" }],
  [
    "it",
    { twilio: "it-IT", vonage: "it-IT", press: "Prema un tasto qualsiasi per ascoltare il suo codice di verifica.", code: "Il suo codice di verifica è:" },
  ],
  ["pt", { twilio: "pt-PT", vonage: "pt-PT", press: "Prima qualquer tecla para ouvir o seu código de verificação.", code: "O seu código de verificação é:" }],
  [
    "pt-br",
    { twilio: "pt-BR", vonage: "pt-BR", press: "Pressione qualquer tecla para ouvir seu código de verificação.", code: "Seu código de verificação é:" },
  ],
  ["nl", { twilio: "nl-NL", vonage: "nl-NL", press: "Druk op een willekeurige toets om uw verificatiecode te horen.", code: "Uw verificatiecode is:" }],
  ["pl", { twilio: "pl-PL", vonage: "pl-PL", press: "Naciśnij dowolny klawisz, aby usłyszeć kod weryfikacyjny.", code: "Twój kod weryfikacyjny to:" }],
  ["ru", { twilio: "ru-RU", vonage: "ru-RU", press: "Нажмите любую клавишу, чтобы услышать код подтверждения.", code: "Ваш код подтверждения:" }],
  ["tr", { twilio: "tr-TR", vonage: "tr-TR", press: "Doğrulama kodunuzu duymak için herhangi bir tuşa basın.", code: "Doğrulama kodunuz:" }],
  ["ar", { twilio: "ar-XA", vonage: "ar", press: "اضغط على أي مفتاح لسماع رمز التحقق.", code: "رمز التحقق الخاص بك هو:" }],
  ["hi", { twilio: "hi-IN", vonage: "hi-IN", press: "अपना सत्यापन कोड सुनने के लिए कोई भी बटन दबाएँ।", code: "आपका सत्यापन कोड है:" }],
  ["zh", { twilio: "cmn-CN", vonage: "cmn-CN", press: "请按任意键收听您的验证码。", code: "您的验证码是：" }],
  ["ja", { twilio: "ja-JP", vonage: "ja-JP", press: "認証コードを聞くには、いずれかのキーを押してください。", code: "認証コードは次のとおりです。" }],
  ["ko", { twilio: "ko-KR", vonage: "ko-KR", press: "인증 코드를 들으시려면 아무 버튼이나 눌러 주세요.", code: "인증 코드는 다음과 같습니다." }],
]);

const english = speeches.get("en") as Speech;

/** What a call for the message says: in its language, or else in English. */
export function speechFor(message: Pick<CodeMessage, "locale" | "country">): Speech {
  return forLanguage(speeches, message) ?? english;
}

/** The sentence with the code, each digit apart. */
export function spokenCode({ code: start }: Speech, code: string): string {
  return `${start} ${[...code].join(", ")}.`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" };

/** Escapes text and attribute values for XML. */
export function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
