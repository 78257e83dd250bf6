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

const speech = (press: string, code: string, twilio: string, vonage = twilio): Speech => ({ twilio, vonage, press, code });

/** By BCP 47 tag, in lower case. */
const speeches: ReadonlyMap<string, Speech> = new Map([
  ["en", speech("Press any key to hear your verification code.", "Your verification code is:", "en-US")],
  ["fr", speech("Appuyez sur une touche pour entendre votre code de vérification.", "Votre code de vérification est :", "fr-FR")],
  ["de", speech("Drücken Sie eine beliebige Taste, um Ihren Bestätigungscode zu hören.", "Ihr Bestätigungscode lautet:", "de-DE")],
  ["es", speech("Pulse cualquier tecla para escuchar su código de verificación.", "Su código de verificación es:", "es-ES")],
  ["it", speech("Prema un tasto qualsiasi per ascoltare il suo codice di verifica.", "Il suo codice di verifica è:", "it-IT")],
  ["pt", speech("Prima qualquer tecla para ouvir o seu código de verificação.", "O seu código de verificação é:", "pt-PT")],
  ["pt-br", speech("Pressione qualquer tecla para ouvir seu código de verificação.", "Seu código de verificação é:", "pt-BR")],
  ["nl", speech("Druk op een willekeurige toets om uw verificatiecode te horen.", "Uw verificatiecode is:", "nl-NL")],
  ["pl", speech("Naciśnij dowolny klawisz, aby usłyszeć kod weryfikacyjny.", "Twój kod weryfikacyjny to:", "pl-PL")],
  ["ru", speech("Нажмите любую клавишу, чтобы услышать код подтверждения.", "Ваш код подтверждения:", "ru-RU")],
  ["tr", speech("Doğrulama kodunuzu duymak için herhangi bir tuşa basın.", "Doğrulama kodunuz:", "tr-TR")],
  ["ar", speech("اضغط على أي مفتاح لسماع رمز التحقق.", "رمز التحقق الخاص بك هو:", "ar-XA", "ar")],
  ["hi", speech("अपना सत्यापन कोड सुनने के लिए कोई भी बटन दबाएँ।", "आपका सत्यापन कोड है:", "hi-IN")],
  ["zh", speech("请按任意键收听您的验证码。", "您的验证码是：", "cmn-CN")],
  ["ja", speech("認証コードを聞くには、いずれかのキーを押してください。", "認証コードは次のとおりです。", "ja-JP")],
  ["ko", speech("인증 코드를 들으시려면 아무 버튼이나 눌러 주세요.", "인증 코드는 다음과 같습니다.", "ko-KR")],
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
