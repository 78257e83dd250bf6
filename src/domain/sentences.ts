import { sameTag, wantedTags } from "./languages.js";

/** What a user reads about a message that was not sent. It never names the rule: an attacker must not learn which. */
export type NotSent = "later" | "number" | "failed";

const sentences: Readonly<Record<string, Readonly<Record<NotSent, string>>>> = {
  ar: {
    later: "طلبتَ عددًا كبيرًا من الرسائل. حاول مرة أخرى لاحقًا.",
    number: "لا يمكن إرسال رسائل إلى رقم الهاتف هذا.",
    failed: "تعذّر إرسال الرسالة. حاول مرة أخرى بعد قليل.",
  },
  de: {
    later: "Es wurden zu viele Nachrichten angefordert. Versuchen Sie es später erneut.",
    number: "An diese Telefonnummer können keine Nachrichten gesendet werden.",
    failed: "Die Nachricht konnte nicht gesendet werden. Versuchen Sie es gleich noch einmal.",
  },
  en: {
    later: "Too many messages were requested. Try again later.",
    number: "This phone number cannot receive messages.",
    failed: "The message could not be sent. Try again in a moment.",
  },
  es: {
    later: "Se han solicitado demasiados mensajes. Inténtalo de nuevo más tarde.",
    number: "Este número de teléfono no puede recibir mensajes.",
    failed: "No se ha podido enviar el mensaje. Inténtalo de nuevo en un momento.",
  },
  fr: {
    later: "Trop de messages ont été demandés. Réessayez plus tard.",
    number: "Ce numéro de téléphone ne peut pas recevoir de messages.",
    failed: "Le message n'a pas pu être envoyé. Réessayez dans un instant.",
  },
  hi: {
    later: "बहुत अधिक संदेशों का अनुरोध किया गया। बाद में फिर कोशिश करें।",
    number: "इस फ़ोन नंबर पर संदेश नहीं भेजे जा सकते।",
    failed: "संदेश नहीं भेजा जा सका। थोड़ी देर में फिर कोशिश करें।",
  },
  it: {
    later: "Sono stati richiesti troppi messaggi. Riprova più tardi.",
    number: "Questo numero di telefono non può ricevere messaggi.",
    failed: "Impossibile inviare il messaggio. Riprova tra poco.",
  },
  ja: {
    later: "メッセージのリクエストが多すぎます。後でもう一度お試しください。",
    number: "この電話番号ではメッセージを受信できません。",
    failed: "メッセージを送信できませんでした。しばらくしてからもう一度お試しください。",
  },
  ko: {
    later: "메시지 요청이 너무 많습니다. 나중에 다시 시도하세요.",
    number: "이 전화번호로는 메시지를 받을 수 없습니다.",
    failed: "메시지를 보내지 못했습니다. 잠시 후 다시 시도하세요.",
  },
  nl: {
    later: "Er zijn te veel berichten aangevraagd. Probeer het later opnieuw.",
    number: "Dit telefoonnummer kan geen berichten ontvangen.",
    failed: "Het bericht kon niet worden verzonden. Probeer het zo opnieuw.",
  },
  pl: {
    later: "Zażądano zbyt wielu wiadomości. Spróbuj ponownie później.",
    number: "Na ten numer telefonu nie można wysyłać wiadomości.",
    failed: "Nie udało się wysłać wiadomości. Spróbuj ponownie za chwilę.",
  },
  pt: {
    later: "Foram solicitadas mensagens demais. Tente novamente mais tarde.",
    number: "Este número de telefone não pode receber mensagens.",
    failed: "Não foi possível enviar a mensagem. Tente novamente em instantes.",
  },
  ru: {
    later: "Запрошено слишком много сообщений. Повторите попытку позже.",
    number: "На этот номер телефона нельзя отправлять сообщения.",
    failed: "Не удалось отправить сообщение. Повторите попытку чуть позже.",
  },
  tr: {
    later: "Çok fazla mesaj istendi. Daha sonra tekrar deneyin.",
    number: "Bu telefon numarası mesaj alamaz.",
    failed: "Mesaj gönderilemedi. Birazdan tekrar deneyin.",
  },
  zh: {
    later: "请求的消息过多。请稍后再试。",
    number: "此电话号码无法接收消息。",
    failed: "消息发送失败。请稍后重试。",
  },
  "zh-hant": {
    later: "要求的訊息過多，請稍後再試。",
    number: "此電話號碼無法接收訊息。",
    failed: "訊息傳送失敗，請稍後再試。",
  },
};

/** One sentence for the end user. `locale`: a BCP 47 tag; a language that is not here gets English. */
export function sentence(kind: NotSent, locale = "en"): string {
  const tag =
    wantedTags(locale)
      .map(sameTag)
      .find((one) => Object.hasOwn(sentences, one)) ?? "en";
  return sentences[tag]?.[kind] as string;
}
