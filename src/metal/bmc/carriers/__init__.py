"""How a boot secret reaches a machine through its BMC: what each carrier can do, as protocols.

A secret that is handed out on the boot network goes to whoever asks first; one that travels through the BMC reaches
the machine behind it. `offers` says which carriers a BMC offers, and why not the others; `virtual_media` inserts an
ISO, `http_boot` tells the firmware a URL, `asset_tag` writes a nonce that the firmware shows in SMBIOS, and
`secure_boot` says what the firmware will start. URLs and nonces are secrets: they reach no log, error, metric or repr.
"""
