"""The fields used of Redfish resources (DSP0268), each with a default for BMCs that omit it."""

from typing import Any

import msgspec


class Ref(msgspec.Struct, frozen=True):
    """A link to another resource."""

    odata_id: str = msgspec.field(default="", name="@odata.id")


class Status(msgspec.Struct, frozen=True, rename="pascal"):
    """Resource.Status."""

    state: str = ""
    health: str = ""


class RootLinks(msgspec.Struct, frozen=True, rename="pascal"):
    """Links of the service root."""

    sessions: Ref = Ref()


class ExpandQuery(msgspec.Struct, frozen=True, rename="pascal"):
    """Whether `$expand` works (ProtocolFeaturesSupported)."""

    no_links: bool = False
    expand_all: bool = False
    levels: bool = False


class ProtocolFeatures(msgspec.Struct, frozen=True, rename="pascal"):
    """Protocol features of the service root."""

    expand_query: ExpandQuery = ExpandQuery()


class ServiceRoot(msgspec.Struct, frozen=True, rename="pascal"):
    """The ServiceRoot: where the collections are, and which protocol features the BMC has."""

    odata_type: str = msgspec.field(default="", name="@odata.type")
    redfish_version: str = ""
    uuid: str = msgspec.field(default="", name="UUID")
    vendor: str = ""
    product: str = ""
    systems: Ref = Ref()
    managers: Ref = Ref()
    session_service: Ref = Ref()
    event_service: Ref = Ref()
    links: RootLinks = RootLinks()
    protocol_features_supported: ProtocolFeatures = ProtocolFeatures()


class Action(msgspec.Struct, frozen=True):
    """An action with its allowable values, or the ActionInfo that lists them."""

    target: str = ""
    reset_types: tuple[str, ...] = msgspec.field(default=(), name="ResetType@Redfish.AllowableValues")
    action_info: str = msgspec.field(default="", name="@Redfish.ActionInfo")


class SystemActions(msgspec.Struct, frozen=True):
    """Actions of a ComputerSystem."""

    reset: Action = msgspec.field(default=Action(), name="#ComputerSystem.Reset")


class ManagerActions(msgspec.Struct, frozen=True):
    """Actions of a Manager."""

    reset: Action = msgspec.field(default=Action(), name="#Manager.Reset")


class TestEventAction(msgspec.Struct, frozen=True):
    """EventService.SubmitTestEvent."""

    target: str = ""


class EventActions(msgspec.Struct, frozen=True):
    """Actions of the EventService."""

    test: TestEventAction = msgspec.field(default=TestEventAction(), name="#EventService.SubmitTestEvent")


class EventService(msgspec.Struct, frozen=True, rename="pascal"):
    """The EventService: its subscriptions and test event."""

    service_enabled: bool = True
    subscriptions: Ref = Ref()
    event_types_for_subscription: tuple[str, ...] = ()
    actions: EventActions = EventActions()


class EventDestination(msgspec.Struct, frozen=True, rename="pascal"):
    """EventDestination, one subscription."""

    destination: str = ""
    context: str = ""


class Parameter(msgspec.Struct, frozen=True, rename="pascal"):
    """One parameter of an ActionInfo."""

    name: str = ""
    allowable_values: tuple[str, ...] = ()


class ActionInfo(msgspec.Struct, frozen=True, rename="pascal"):
    """ActionInfo, the parameters of an action."""

    parameters: tuple[Parameter, ...] = ()


class Boot(msgspec.Struct, frozen=True, rename="pascal"):
    """ComputerSystem.Boot."""

    boot_source_override_enabled: str = ""
    boot_source_override_target: str = ""
    boot_source_override_mode: str = ""
    http_boot_uri: str = ""
    boot_order: tuple[str, ...] = ()
    enabled_values: tuple[str, ...] = msgspec.field(
        default=(), name="BootSourceOverrideEnabled@Redfish.AllowableValues"
    )
    target_values: tuple[str, ...] = msgspec.field(default=(), name="BootSourceOverrideTarget@Redfish.AllowableValues")
    mode_values: tuple[str, ...] = msgspec.field(default=(), name="BootSourceOverrideMode@Redfish.AllowableValues")


class MemorySummary(msgspec.Struct, frozen=True, rename="pascal"):
    """ComputerSystem.MemorySummary."""

    total_system_memory_gib: float = msgspec.field(default=0.0, name="TotalSystemMemoryGiB")


class ProcessorSummary(msgspec.Struct, frozen=True, rename="pascal"):
    """ComputerSystem.ProcessorSummary."""

    model: str = ""


class SystemLinks(msgspec.Struct, frozen=True, rename="pascal"):
    """Links of a ComputerSystem."""

    chassis: tuple[Ref, ...] = ()
    managed_by: tuple[Ref, ...] = ()


class Settings(msgspec.Struct, frozen=True, rename="pascal"):
    """@Redfish.Settings: the resource for changes that apply later."""

    settings_object: Ref = Ref()
    supported_apply_times: tuple[str, ...] = ()


class System(msgspec.Struct, frozen=True, rename="pascal"):
    """A ComputerSystem: identity, power, boot settings and links to its parts."""

    odata_id: str = msgspec.field(default="", name="@odata.id")
    uuid: str = msgspec.field(default="", name="UUID")
    manufacturer: str = ""
    model: str = ""
    sku: str = msgspec.field(default="", name="SKU")
    serial_number: str = ""
    bios_version: str = ""
    power_state: str = ""
    indicator_led: str = msgspec.field(default="", name="IndicatorLED")
    location_indicator_active: bool | None = None
    memory_summary: MemorySummary = MemorySummary()
    processor_summary: ProcessorSummary = ProcessorSummary()
    boot: Boot = Boot()
    actions: SystemActions = SystemActions()
    links: SystemLinks = SystemLinks()
    settings: Settings = msgspec.field(default=Settings(), name="@Redfish.Settings")
    bios: Ref = Ref()
    virtual_media: Ref = Ref()
    secure_boot: Ref = Ref()
    processors: Ref = Ref()
    memory: Ref = Ref()
    storage: Ref = Ref()
    simple_storage: Ref = Ref()
    ethernet_interfaces: Ref = Ref()


class GraphicalConsole(msgspec.Struct, frozen=True, rename="pascal"):
    """Manager.GraphicalConsole."""

    max_concurrent_sessions: int = 0
    connect_types_supported: tuple[str, ...] = ()


class Manager(msgspec.Struct, frozen=True, rename="pascal"):
    """Manager, the BMC itself."""

    odata_id: str = msgspec.field(default="", name="@odata.id")
    uuid: str = msgspec.field(default="", name="UUID")
    manufacturer: str = ""
    model: str = ""
    part_number: str = ""
    serial_number: str = ""
    firmware_version: str = ""
    power_state: str = ""
    last_reset_time: str = ""
    status: Status = Status()
    graphical_console: GraphicalConsole = GraphicalConsole()
    virtual_media: Ref = Ref()
    actions: ManagerActions = ManagerActions()


class Processor(msgspec.Struct, frozen=True, rename="pascal"):
    """A Processor of a system."""

    id: str = ""
    processor_type: str = ""
    processor_architecture: str = ""
    instruction_set: str = ""
    manufacturer: str = ""
    model: str = ""
    max_speed_mhz: int = msgspec.field(default=0, name="MaxSpeedMHz")
    total_cores: int = 0
    total_threads: int = 0
    status: Status = Status()


class MemoryModule(msgspec.Struct, frozen=True, rename="pascal"):
    """A Memory resource: one memory module."""

    id: str = ""
    capacity_mib: int = msgspec.field(default=0, name="CapacityMiB")
    memory_device_type: str = ""
    operating_speed_mhz: int = 0
    manufacturer: str = ""
    part_number: str = ""
    serial_number: str = ""
    status: Status = Status()


class Identifier(msgspec.Struct, frozen=True, rename="pascal"):
    """Resource.Identifier."""

    durable_name: str = ""
    durable_name_format: str = ""


class Drive(msgspec.Struct, frozen=True, rename="pascal"):
    """Drive, and a device of SimpleStorage."""

    odata_id: str = msgspec.field(default="", name="@odata.id")
    id: str = ""
    name: str = ""
    media_type: str = ""
    protocol: str = ""
    capacity_bytes: int = 0
    manufacturer: str = ""
    model: str = ""
    serial_number: str = ""
    identifiers: tuple[Identifier, ...] = ()
    status: Status = Status()


class VolumeLinks(msgspec.Struct, frozen=True, rename="pascal"):
    """Links of a volume."""

    drives: tuple[Ref, ...] = ()


class Volume(msgspec.Struct, frozen=True, rename="pascal"):
    """A Volume of a Storage."""

    id: str = ""
    name: str = ""
    capacity_bytes: int = 0
    raid_type: str = msgspec.field(default="", name="RAIDType")
    volume_usage: str = ""
    identifiers: tuple[Identifier, ...] = ()
    links: VolumeLinks = VolumeLinks()
    status: Status = Status()


class Storage(msgspec.Struct, frozen=True, rename="pascal"):
    """Storage. Drives stay undecoded: some BMCs embed the whole drive in place of the link."""

    id: str = ""
    name: str = ""
    status: Status = Status()
    drives: tuple[dict[str, Any], ...] = ()
    volumes: Ref = Ref()


class SimpleStorage(msgspec.Struct, frozen=True, rename="pascal"):
    """A SimpleStorage, which older BMCs have in place of Storage."""

    id: str = ""
    name: str = ""
    status: Status = Status()
    devices: tuple[Drive, ...] = ()


class EthernetInterface(msgspec.Struct, frozen=True, rename="pascal"):
    """An EthernetInterface of a system."""

    id: str = ""
    mac_address: str = msgspec.field(default="", name="MACAddress")
    permanent_mac_address: str = msgspec.field(default="", name="PermanentMACAddress")
    link_status: str = ""
    status: Status = Status()


class Chassis(msgspec.Struct, frozen=True, rename="pascal"):
    """A Chassis, as far as it leads to network adapters."""

    network_adapters: Ref = Ref()


class NetworkAdapter(msgspec.Struct, frozen=True, rename="pascal"):
    """A NetworkAdapter of a chassis."""

    id: str = ""
    network_device_functions: Ref = Ref()


class EthernetFunction(msgspec.Struct, frozen=True, rename="pascal"):
    """NetworkDeviceFunction.Ethernet."""

    mac_address: str = msgspec.field(default="", name="MACAddress")
    permanent_mac_address: str = msgspec.field(default="", name="PermanentMACAddress")


class NetworkDeviceFunction(msgspec.Struct, frozen=True, rename="pascal"):
    """A NetworkDeviceFunction of a network adapter: one port as the host sees it."""

    id: str = ""
    ethernet: EthernetFunction = EthernetFunction()


class BiosActions(msgspec.Struct, frozen=True):
    """Actions of a Bios."""

    reset_bios: Action = msgspec.field(default=Action(), name="#Bios.ResetBios")


class Bios(msgspec.Struct, frozen=True, rename="pascal"):
    """Bios, and its settings object with the same properties."""

    attributes: dict[str, Any] = {}
    reset_bios_to_defaults_pending: bool | None = None
    settings: Settings = msgspec.field(default=Settings(), name="@Redfish.Settings")
    actions: BiosActions = BiosActions()


class InsertAction(msgspec.Struct, frozen=True):
    """VirtualMedia.InsertMedia, with the values of its parameters that the BMC lists."""

    target: str = ""
    protocols: tuple[str, ...] = msgspec.field(default=(), name="TransferProtocolType@Redfish.AllowableValues")
    methods: tuple[str, ...] = msgspec.field(default=(), name="TransferMethod@Redfish.AllowableValues")
    media_types: tuple[str, ...] = msgspec.field(default=(), name="MediaType@Redfish.AllowableValues")
    action_info: str = msgspec.field(default="", name="@Redfish.ActionInfo")


class MediaActions(msgspec.Struct, frozen=True):
    """Actions of a VirtualMedia."""

    insert: InsertAction = msgspec.field(default=InsertAction(), name="#VirtualMedia.InsertMedia")
    eject: Action = msgspec.field(default=Action(), name="#VirtualMedia.EjectMedia")


class VirtualMedia(msgspec.Struct, frozen=True, rename="pascal"):
    """A VirtualMedia: one virtual drive."""

    media_types: tuple[str, ...] = ()
    image: str = ""
    image_name: str = ""
    inserted: bool | None = None
    connected_via: str = ""
    actions: MediaActions = MediaActions()


class SecureBoot(msgspec.Struct, frozen=True, rename="pascal"):
    """The SecureBoot of a system."""

    secure_boot_enable: bool | None = None
    secure_boot_current_boot: str = ""
    secure_boot_mode: str = ""
