"""Wings: packages beside the core, which use Exegete through `exegete.plugins` as anybody's package would."""
