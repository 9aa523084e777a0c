// Today's price comes from the shop's API after the page has loaded; the clock is the visitor's own.
const price = document.querySelector(".today-price");
if (price) {
  fetch("/api/price?sku=" + encodeURIComponent(price.dataset.sku))
    .then((answer) => answer.json())
    .then((today) => {
      price.textContent = today.text;
      price.dataset.amount = today.amount;
      price.dataset.currency = today.currency;
      price.dataset.ready = "";
    });
}

const clock = document.querySelector(".your-time");
if (clock) {
  const own = Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  clock.dataset.timeZone = own.resolvedOptions().timeZone;
  clock.textContent = own.format(new Date()) + " (" + clock.dataset.timeZone + ")";
}
