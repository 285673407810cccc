export function Live() {
  return <main id="main">live</main>;
}
